// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is the memory of simulated devices: allocations, mappings, the
// ranges of the host that kernels may touch, and what of another device's memory
// they reach.
//
// Device memory lies outside Go's heap. Device addresses are made up, never
// used twice, and not canonical, so that a host dereference faults at once. What
// was freed is remembered for a while, for messages.
package memory
