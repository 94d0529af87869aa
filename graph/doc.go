// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package graph builds, captures, instantiates and updates CUDA graphs, and
// keeps alive what they touch: a graph never reads freed memory.
//
// A node's operands are passed as [Operand] values, each with a [Retainer]. The
// package knows neither Python nor buffers. It knows when the last user of an
// operand has ended, and then calls Release, once.
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
//	parent of a child    Child, Move                   the parent is closed
//	Exec                 Instantiate, or an update     the node is updated, the Exec closed
//	launch under way     the Exec lets go              its last launch that may use it has ended
//
// The graph holds the operands of nodes in conditional bodies like those of its
// own nodes, and what it or a body keeps as a whole ([Graph.Retain],
// [Capture.Keep]). Memory of alloc nodes is not retained: it belongs to the driver,
// at an address that the driver graph reserves. That graph lives as long as the
// graph, an executable or a holder of the memory. What a capture allocates
// ([Capture.Alloc]) is such memory once the capture has become a graph; as long
// as that is open, only its own operations can use the memory.
//
// An operand is released when its bundle's last holder lets go. An operand of a
// call that failed is released by that call, which changed nothing else.
//
// What the caller must still do:
//
//   - Close graphs and executables. Go's collector releases nothing.
//   - Pass an operand for each address in the parameters. Nothing can be
//     retained for a bare address: the caller must keep that memory alive.
//   - Pin what can move: a Retainer must hold the memory itself, not merely an
//     object that could reallocate it.
//   - Report launches made with [Exec.Handle] (Uses of [ExecOptions]), and do not
//     let them overlap with updates of the executable: the driver does not
//     synchronize these.
//   - Keep a graph open while another library uses its handle. Clones and
//     executables made behind our back keep nothing alive.
//
// # How the end of a launch is known
//
// By the [Line] of its stream, which numbers the stream's work and tracks how
// much of it has completed. A launch costs only its number; CUDA's own
// mechanism, user objects, would make it two to five times slower. For each
// stream that it was launched on, an executable keeps the number of its last
// launch there. When it is updated or closed, the operands that it gives up are
// released once the lines have proven these numbers complete: immediately, if
// they already have.
//
// A line uses events, recorded behind the work, as proof. If one is needed and
// missing, the thread that updates or closes records it. If a capture prevents
// that, it is recorded later: by the next thread that uses the stream, or by
// the reaper, which records only in streams that nobody else has. The reaper
// queries the events, releases operands and destroys executables.
//
// A line keeps the handle of our own stream valid, so that the stream may be
// closed first. The handles of default streams and of other libraries' streams
// cannot be kept valid, so there every launch made by this package is followed
// by an event immediately.
//
// If the device has failed for good, no launched work runs any more, and
// everything is released. If an event cannot be recorded or queried for another
// reason, the operands are held until it can: too long is safe, too short is
// not.
//
// A driver that looks for races takes each query that succeeds for a wait of the
// program. So what the program has not asked for, which is the work of the reaper
// and what launches and collections look after, queries aside: see
// [Line.ProveAside]. Operands of work that the program has not waited for are
// released a second after its end then, unless somebody waits for the reaper.
//
// # Captures
//
// An operation passed to [Capture.Record] becomes a node with a name and a
// bundle, as if it had been added to the graph. Operations of other libraries
// in the same capture become nodes too, with unknown operands. What operations of
// ours use in a capture that another library began, and what graphs and executables
// use that are launched into it, is kept by a user object of its graph: see
// [cuda.Stream.HoldForCapture].
//
// Some calls invalidate the captures of other threads: destroying an
// executable, instantiating, querying an event. This package makes them in
// relaxed capture mode only, in which the driver allows them: on the reaper,
// and on a caller's thread for the length of the call.
//
// Querying an event that was recorded in a capture invalidates that capture,
// and recording one while another thread begins or ends a capture crashes
// NVIDIA's driver. So events are recorded under the capture lock of package
// cuda, and only in streams that are not capturing. That lock covers only
// captures begun by [Begin]. To be safe from captures of other libraries, the
// reaper does not record in streams that they have.
//
// # Locks
//
// In this order, each optional:
//
//	the GIL, if the caller has one
//	  Capture.mu       with it the turn of the capture's Recorder, which holds nothing else and waits for nobody
//	    Exec.gate      launches in, updates and Close alone
//	      Exec.launching one launch of Go's at a time
//	      hierarchy.mu   driver calls on one graph and what is embedded in it; two of them by order
//	      Exec.mu        the state of one executable
//	      Line.mu        events of one line, and what waits for it
//	        the begin of a capture
//	          cuda's capture lock, the tables of captures and lines, the reaper's lock
//
// None is held while a Retainer is released or a function of After runs. Three
// places make calls that block. [Exec.Launch] waits inside the gate while the
// driver's queue is full, and updates and Close wait for it: so Launch is
// called without the GIL, and the others with the GIL only while [Exec.Busy] is
// false. [Graph.Instantiate] holds hierarchy.mu across a call that waits for
// another thread's full queue; [Graph.Busy] reports that. [NewLine], [LineOf]
// and [Line.Marked] create events, which waits in the same way; they hold no
// lock meanwhile.
package graph
