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
// # Rooms
//
// This package is the machine: devices and modules, decoding, launches, blocks
// (a cta), warps, frames and control flow. Below it, each knowing only what
// stands further down:
//
//	check       races, and reads of what nobody wrote
//	lane        what each instruction does over the lanes of a warp
//	fault       the errors that stop kernels
//	descriptor  what kernels are handed instead of an address: tensor maps, textures, surfaces
//	matrix      products of matrices that a warp's lanes hold
//	memory      device memory, mappings, host ranges, peers
//	shadow      what the checks remember of memory
//	register    rows of 32 values
//	numeric     one lane's arithmetic
//
// Package sweep has the tests of arithmetic, vmtest and thin what tests share,
// and benchsim is the benchmark.
//
// Every access is checked against the allocation that it hits.
//
// # Locks
//
// Device.mu, then Module.mu, then memory.Memory.mu. No lock is held while lanes
// run, except that a check locks the shadows that it reads.
package ptxvm
