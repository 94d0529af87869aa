// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

// eventRecordWork is a node that records an event.
type eventRecordWork struct{ e *event }

// run completes the recording that became the event's latest at the launch.
func (w *eventRecordWork) run(x *execution) *failure {
	rec := x.graph.recordOf(x.node)
	f := rec.run(x)
	rec.tl.advance(rec.seq)
	return f
}

// eventWaitWork is a node that waits for the recording of an event that is the
// latest at the launch, as on an H200 (driver 580.159): recordings by the launch
// itself, and what is recorded between the launch and the node's turn, do not count.
// So it never waits for what is queued behind it.
type eventWaitWork struct{ e *event }

func (w *eventWaitWork) run(x *execution) *failure {
	rec := x.graph.awaitedBy(x.node)
	if rec != nil && rec.capture == nil {
		if f := x.sim.shuffle; f != nil {
			f.runUntil(rec.point) // no other goroutine runs what records it
		} else {
			rec.wait()
		}
		x.joined(rec.point)
	}
	return nil
}
