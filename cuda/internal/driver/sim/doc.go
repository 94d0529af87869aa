// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package sim is the simulated driver: driver.API in pure Go, over devices
// that interpret PTX (package ptxvm). It is a driver, not a mock: calls have
// CUDA's semantics and result codes.
//
// # Execution
//
// A stream is a queue. While it has work, one goroutine runs that work in
// order; an idle stream has none. How far a stream has come is a number (type
// timeline), and "after that work" is a stream and a number (type point), so
// that events, waits and the default stream's rules cost one comparison.
//
// Whoever waits for a stream works on its queue itself if no goroutine has come
// to it yet: a kernel and a wait then need no change of threads. So a host
// function may run on the thread of a caller that waits.
//
// An executable graph is a flat, sorted list of immutable nodes. A launch is
// one item of its stream's queue and runs the list of the moment of the launch,
// so that updates never reach a running launch.
//
// With a seed, what may run in any order runs in a random one: work of streams
// that nothing orders, graph nodes without an edge, blocks of a launch. A
// missing edge or event then shows.
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
// What goes wrong in queued work poisons its context: later calls return the
// code, later work is dropped, and FaultReport tells the story. Other devices
// go on. A context that was released by its last holder, or reset, and retained
// anew is healthy again, where CUDA would want a new process. A reset may come
// beside other calls: what they make in the old context goes as well.
//
// Where NVIDIA's driver crashes, there is no code: the process ends here too
// (crash.go).
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
