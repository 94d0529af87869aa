// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package check finds defects of programs that do not stop them: races, reads of
// what nobody wrote, and barriers that only a part of a warp executes.
//
// A Decoder puts checks around the instructions of a kernel's watched form, so
// that the other form pays nothing for them; a Block is their state while a block
// runs; a Watch gathers what is found about one launch or copy.
//
// # Locks
//
// Those of package shadow, then Watch.mu.
package check
