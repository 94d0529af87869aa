// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package ptxvm runs lowered PTX (package ptxir) on the host: it is the
// simulated device below the simulated driver.
//
// # Model
//
// A block runs in one goroutine. Its threads are warps of 32 lanes in lockstep:
// a register is a vector of 32 values, a predicate a 32-bit mask, and one
// decoded instruction is one call of a small function that loops over lanes.
// Lanes that diverge form groups of (frame, block, mask); the group that is
// furthest behind runs first and groups that meet merge. Barriers and warp
// collectives park a group until its partners come. Blocks are handed to a few
// workers in ascending order.
//
// # Memory
//
// Device memory lies outside Go's heap. Device addresses are made up, never
// used twice, and not canonical, so that a host dereference faults at once.
// Every access is checked against the allocation that it hits.
//
// # Locks
//
// Device.mu, then Module.mu, then Memory.mu. No lock is held while lanes run.
// The race detector does not see lanes touch device memory (go:norace): races
// between simulated threads are the simulated program's, not ours.
package ptxvm
