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
// latest when the node runs.
type eventWaitWork struct{ e *event }

func (w *eventWaitWork) run(x *execution) *failure {
	rec := w.e.get()
	// A recording by this same launch is either done, because of an edge, or
	// unordered: then waiting for it could take forever.
	if rec != nil && rec.capture == nil && rec.launch != x.graph {
		if f := x.sim.shuffle; f != nil {
			f.runUntil(rec.point) // no other goroutine runs what records it
		} else {
			rec.wait()
		}
		x.joined(rec.point)
	}
	return nil
}
