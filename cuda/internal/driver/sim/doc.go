// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package sim is the simulated driver: driver.API in pure Go, over devices
// that interpret PTX (package ptxvm). It is a driver, not a mock: calls have
// CUDA's semantics and result codes.
//
// # Execution
//
// A stream is a queue. While it has work, one goroutine runs that work in
// order; an idle stream has none. The progress of a stream is a number (type
// timeline), and "after that work" is a stream and a number (type point), so
// that events, waits and the default stream's rules cost one comparison.
//
// A caller that waits for a stream runs its queue itself if no goroutine has
// started yet: a kernel followed by a wait then needs no switch of threads. So
// a host function may run on the thread of a waiting caller.
//
// An executable graph is a flat, sorted list of immutable nodes. A launch is
// one item of its stream's queue and runs the list as it was at the launch, so
// that updates never affect a running launch.
//
// With a seed, work that may run in any order runs in a random one: work of
// unordered streams, graph nodes without an edge between them, blocks of a
// launch. This reveals missing edges and events.
//
// # Checks
//
// Findings of checks (driver.Checker) do not stop work and break no context: the
// next call that waits returns them. While races are looked for, each item of a
// queue carries the clock of what happens before it (type order), and the VM
// keeps who accessed each word last.
//
// # Errors
//
// A failure in queued work poisons its context: later calls return the code,
// later work is dropped, and FaultReport has the details. Other devices are not
// affected. A context that was released by its last holder, or reset, and
// retained again is healthy, where CUDA would need a new process. A reset may
// run concurrently with other calls: what they create in the old context is
// destroyed too.
//
// Where NVIDIA's driver crashes there is no code to return: the process ends
// here too (crash.go).
//
// # Threads
//
// The current context and the capture mode are kept for each OS thread, by its
// id. What a thread set explicitly with cuCtxSetCurrent outlives the thread, and
// a later thread of the same id finds it.
//
// # Locks
//
// In this order, and no other: device.life, graphMu, graphExec.mu, stream.mu, context.mu,
// space.mu, virtualSpace.mu, advised.mu, peerings.mu, pool.mu, event.mu, shuffler.mu, order.mu,
// timeline.mu, checker.mu. None but the first is held while device work or a host
// function runs, or while waiting for one.
package sim
