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
// Only [Driver.Name] shows which driver it is; an operation that one of them
// cannot do is an error there.
//
// # Contexts and threads
//
// There is no current device to set. Each call makes its object's context
// current for its own duration and restores the caller's, so that other CUDA
// code in the process is not disturbed. Everything is safe for concurrent use
// unless documented otherwise, as the raw graph calls are.
//
// Three things belong to an OS thread and need runtime.LockOSThread in the
// caller: a capture that is not [CaptureRelaxed], the per-thread default stream,
// and [Driver.ExchangeCaptureMode].
//
// # Streams
//
// "Stream-ordered on s" means that a call enqueues work and returns before it
// has run; a later call reports its errors. Nothing here synchronizes unless
// its documentation says "blocks".
//
// # Lifetimes
//
// Everything that the driver creates has a Close, which never waits for a call
// under way and may be repeated. Go's garbage collector frees nothing. A handle
// in use is destroyed by its last user:
//
//	this           is kept alive by                                 until
//	Stream         a running call, Use, a Buffer to be freed on it  it ends, done, the free
//	Event          a running call, Use                              it ends, done
//	allocation     Buffers, slices, Retain, a running call          Close, Release, it ends
//	Module         its ObjectCode, Kernels, Retain, a running call  Close, Release, it ends
//	pool           its resource; its allocations                    Close; the last free; then the next resource
//	Context        its Driver                                       Close, Device.Reset
//
// Work in flight keeps nothing alive, except on the stream where memory will be
// freed: there the free comes after it. Otherwise the caller must synchronize,
// or order the streams, before closing.
//
// [Device.Reset] ends a Context and everything made in it: using them is an
// error then, and Close does nothing.
//
// Nothing is released in a stream that is capturing; that waits for the end of
// the capture, or for [Driver.Drain]. [Driver.OnWarning] receives releases that
// the driver refuses.
//
// # Errors
//
// A driver call that fails is an [*Error], with the call, the [Result] and the
// numbers; errors.Is(err, [ErrorOutOfMemory]) tests for a code. Arguments are
// checked before the driver is called: [*ArgumentError]. Using a closed object
// is a [*ClosedError], using one that a reset ended a [*LostError]. A call that
// fails has created nothing and changed nothing, and the caller's context is
// current again.
//
// A [Result.Sticky] error belongs to earlier work and has broken the context.
//
// # Locks
//
// Driver.mu, ObjectCode.mu, allocation.mu and deferred.mu are leaves: none is
// held while another is taken, and none across a driver call except
// cuDeviceGet, which does not block. Device.making is above them: a reset holds
// it while it waits for calls, and retaining a context read-locks it, which no
// call under way in that context does. Use counts are atomic. Driver.capture is
// held across the calls that begin, join and end captures and that record
// events; beginning one waits on NVIDIA's driver while another thread is stuck
// in a full launch queue, so locks that are held across calls into this package
// come before it. Driver.related is read-locked across calls that read state
// shared by related graphs, of which cuGraphInstantiate may wait; whoever needs
// it exclusively should only try: [Context.TryGraphDestroy].
package cuda
