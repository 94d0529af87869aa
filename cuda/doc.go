// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package cuda is the CUDA driver API with Go types, Go errors and Go
// lifetimes, on NVIDIA's driver or on a simulated one.
//
// Start with [Open]. A [Driver] has [Device]s; a device has one [Context], and
// that makes [Stream]s, [Event]s and, through a [MemoryResource], [Buffer]s. A
// [Program] compiles to [ObjectCode], which has [Kernel]s, which [Launch]
// enqueues in a stream. Graphs are in package graph, on the raw calls of this
// one.
//
// Which driver it is shows nowhere but in [Driver.Name]: what one of them cannot
// do is an error there.
//
// # Contexts and threads
//
// There is no current device to set. Each call makes its object's context
// current for its own length and restores the caller's, so that other CUDA code
// in the process is not disturbed. Everything is safe for concurrent use unless
// it says otherwise; the raw graph calls do.
//
// Three things belong to an OS thread and need runtime.LockOSThread in the
// caller: a capture that is not [CaptureRelaxed], the per-thread default stream,
// and [Driver.ExchangeCaptureMode].
//
// # Streams
//
// "Stream-ordered on s" means that a call enqueues work and returns before it
// has run; its errors come out of a later call. Nothing here synchronizes unless
// its documentation says "blocks".
//
// # Lifetimes
//
// What the driver creates has a Close, which is explicit, never blocks on a call
// under way and may be repeated. Go's garbage collector frees nothing. A handle
// in use is destroyed by its last user:
//
//	this           is kept alive by                                 until
//	Stream         a running call, Use, a Buffer to be freed on it  it ends, done, the free
//	Event          a running call, Use                              it ends, done
//	allocation     Buffers, slices, Retain, a running call          Close, Release, it ends
//	Module         its ObjectCode, Kernels, Retain, a running call  Close, Release, it ends
//	pool           its resource; the driver, for its allocations    Close; the last free
//	Context        its Driver                                       Close, Device.Reset
//
// Work in flight keeps nothing alive but on the stream where memory will be
// freed: there the free comes after it. Otherwise the caller synchronizes, or
// orders the streams, before it closes.
//
// [Device.Reset] takes away a Context and all that was made in it: their use is
// an error then, and their Close has nothing to do.
//
// Nothing is given back in a stream that is capturing; that waits for the end
// of the capture, or for [Driver.Drain]. A driver that refuses to take
// something back is reported to [Driver.OnWarning].
//
// # Errors
//
// A driver call that fails is an [*Error], with the call, the [Result] and the
// numbers; errors.Is(err, [ErrorOutOfMemory]) tests for a code. Arguments are
// checked before the driver is called: [*ArgumentError]. What is closed is a
// [*ClosedError], what a reset took away a [*LostError]. A call that fails has created nothing and changed nothing, and
// the caller's context is current again.
//
// A [Result.Sticky] error belongs to earlier work and has broken the context.
//
// # Locks
//
// Driver.mu, ObjectCode.mu, allocation.mu and deferred.mu are leaves: none is
// held while another is taken, and none across a driver call but
// cuDeviceGet, which does not block. Device.making is above them: a reset holds it
// while it waits for calls, and who retains a context holds it for reading, which
// no call under way in that context does. Use counts are atomic. Driver.capture is
// held across the calls that begin, join and end captures and that record
// events; to begin one waits on NVIDIA's driver while another thread is stuck in
// a full launch queue. So calls into this package come before it. Driver.related is
// shared across calls that read what related graphs have in common, of which
// cuGraphInstantiate may wait; who needs it alone only tries.
package cuda
