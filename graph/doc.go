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
//   - Report launches made with [Exec.Handle] (NoteStream, Busy, Launches), and
//     keep them and updates of the same executable apart: the driver does not.
//   - Keep a graph open while another library uses its handle. Clones and
//     executables made behind our back keep nothing alive.
//
// # How the end of a launch is known
//
// A launch costs nothing but a note of its stream. When an executable is updated
// or closed, the reaper records one event in each noted stream, polls these, and
// then releases; an executable that is closed is destroyed in between. CUDA's
// own means, user objects, would make every launch two to five times dearer.
//
// The executable keeps the handles of its streams valid, so that a stream may be
// closed first. On the per-thread default stream and on streams of other
// libraries, of which no handle can be kept, each launch is followed by an event
// instead.
//
// If the device has failed for good, nothing that was launched runs any more,
// and everything is released. If an event cannot be recorded for another reason
// the operands are held until it can: too long is safe, too short is not.
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
// caller's thread for the length of the call. Events are recorded in streams
// that are not capturing; in others, once the capture has ended.
//
// # Locks
//
// In this order, each optional:
//
//	the GIL, if the caller has one
//	  Capture.mu
//	    Exec.api       driver calls on one executable
//	      hierarchy.mu driver calls on one graph and what is embedded in it; two of them by order
//	        Exec.mu    the state of one executable
//	          the tables of open captures and of noted streams, the reaper's lock
//
// None is held while a Retainer is released. All but Exec.api are held only
// for calls that do not block. Exec.api is held by [Exec.Launch], which waits
// while the driver's queue is full, and an update waits for that: so Launch must
// be called without the GIL, and an update with it only while no Launch of the
// same executable is under way.
package graph
