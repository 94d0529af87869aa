// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package finalize decides when things end: a registry of finalizers with the
// semantics of Python's weakref.finalize, a queue of references that only the
// holder of the GIL may drop, and a reaper that waits for the device.
//
// The three compose. A finalizer runs once: on close, on the last reference or
// at exit. What the device may still touch it hands to the [Reaper], which
// polls without a lock and without the GIL. What Python must drop then goes to
// the [DropQueue], which a thread that holds the GIL drains.
//
// The package imports nothing of ours, and knows neither CUDA nor Python.
//
// # Locks
//
// Each type has one mutex. None is held while a function that the owner
// supplied runs, so such a function may call back into the same object.
package finalize
