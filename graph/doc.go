// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package graph builds, captures, instantiates and updates CUDA graphs, and
// keeps alive what they touch: a graph never reads freed memory.
//
// A node's operands are handed over as [Operand] values, each with a [Retainer].
// The package knows neither Python nor buffers; it knows when the last user of
// an operand has ended, and then calls Release, once.
//
// # Who keeps what alive
//
// The operands of one version of one node's parameters form a bundle, which
// never changes and is counted by its holders:
//
//	holder               from                          until
//	Graph                the node is added, updated    the node is updated, the graph closed
//	  (captured)         the operation is recorded     as above, or the capture fails
//	clone                Clone                         as for Graph, on its own
//	parent of a child    Child                         the parent is closed
//	Exec                 Instantiate, or an update     the node is updated, the Exec closed
//	launch under way     the Exec lets go              its last launch that may use it has ended
//
// Nodes in the bodies of a conditional node are the graph's as its own are. What
// alloc nodes allocate is not retained by anybody: it is the driver's, at an
// address that the driver graph reserves, which lives as long as the graph, an
// executable or a holder of the memory does.
//
// An operand is released when its bundle's last holder lets go. An operand of a
// call that failed is released by that call, which changed nothing else.
//
// What the caller must still do:
//
//   - Close graphs and executables. Go's collector releases nothing.
//   - Hand over an operand for each address in the parameters. For a bare
//     address nothing can be retained: the memory is the caller's problem.
//   - Pin what can move: a Retainer must hold the memory itself, not merely an
//     object that could reallocate it.
//   - Report launches made with [Exec.Handle] (Uses of [ExecOptions]), and keep
//     them apart from updates of the same executable: the driver does not.
//   - Keep a graph open while another library uses its handle. Clones and
//     executables made behind our back keep nothing alive.
//
// # How the end of a launch is known
//
// By the [Line] of its stream, which numbers the work in it and alone knows how
// far that has ended. A launch costs nothing but its number; CUDA's own means,
// user objects, would make it two to five times dearer. An executable keeps, for
// each stream that it was launched on, the number of its last launch there. When
// it is updated or closed, what it lets go of is released once the lines have
// proven these numbers: at once, if they have already.
//
// A line proves by events, which follow the work. One that is needed and missing
// is recorded by the thread that updates or closes; if a capture is in the way,
// later: by the next thread that uses the stream, or by the reaper, which records
// in streams only that nobody else has. The reaper asks the events, releases
// and destroys.
//
// A line keeps the handle of a stream of ours valid, so that the stream may be
// closed first. On the default streams and on streams of other libraries, of
// which no handle can be kept, each launch of Go's is followed by an event at
// once.
//
// If the device has failed for good, nothing that was launched runs any more,
// and everything is released. If an event cannot be recorded or asked for another
// reason the operands are held until it can: too long is safe, too short is not.
//
// # Captures
//
// What [Capture.Record] is given becomes a node with a name and a bundle, as if
// it had been added. Operations of other libraries in the same capture become
// nodes too; nothing is known of their operands.
//
// Some calls spoil the captures of other threads: destroying an executable,
// instantiating, asking for an event's state. This package makes them in relaxed
// capture mode only, in which the driver lets them pass: on the reaper, and on a
// caller's thread for the length of the call.
//
// An event that was recorded in a capture spoils it when it is asked, and a
// record beside the begin or the end of a capture crashes NVIDIA's driver. So
// events are recorded under the capture lock of package cuda, and only where
// nothing is captured. That lock knows the captures of [Begin] alone: hence the
// reaper's restraint, which other libraries' captures need.
//
// # Locks
//
// In this order, each optional:
//
//	the GIL, if the caller has one
//	  Capture.mu
//	    Exec.gate      launches in, updates and Close alone
//	      Exec.launching one launch of Go's at a time
//	      hierarchy.mu   driver calls on one graph and what is embedded in it; two of them by order
//	      Exec.mu        the state of one executable
//	      Line.mu        events of one line, and what waits for it
//	        cuda's capture lock, the tables of captures and lines, the reaper's lock
//
// None is held while a Retainer is released or a function of After runs. Calls
// that block are made in three places. [Exec.Launch] waits in the gate while the
// driver's queue is full, and updates and Close wait for it: so it is called
// without the GIL, and those with it only while [Exec.Busy] is false.
// [Graph.Instantiate] holds hierarchy.mu across a call that waits for another
// thread's full queue: [Graph.Busy] says so. [NewLine], [LineOf] and
// [Line.Marked] create events, which waits in the same way, and hold no lock
// meanwhile.
package graph
