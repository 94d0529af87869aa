// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync/atomic"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// This file makes calls wait as NVIDIA's driver does while a thread is stuck in
// a launch because the stream's queue is full. Only with hostile=1. Measured on
// an H200, driver 580.159, with three threads: a host function that does not
// return, launches behind it until one blocks, and the call in question, into
// another stream or into that one. What is not listed here did not wait: queries
// of events, stream-ordered allocations, calls that build or change graphs, and
// launches and copies into a stream that is capturing.

// queueLimit is how many launches a stream's queue takes. Of graphs with a host
// function it was 28.
const queueLimit = 1021

// stuck counts the threads that wait for room in a full queue.
type stuck struct {
	launches atomic.Int32 // of any kind
	graphs   atomic.Int32 // cuGraphLaunch
}

// behindLaunches is at the head of the calls that wait for any stuck launch:
// cuLaunchHostFunc, cuMemAlloc, cuMemHostAlloc, cuEventCreate, cuEventDestroy,
// cuStreamCreate, cuStreamDestroy, cuStreamBeginCapture, cuGraphInstantiate,
// cuGraphExecDestroy, cuFuncSetAttribute, cuModuleGetGlobal.
func (d *simulator) behindLaunches() { d.awaitZero(&d.stuck.launches) }

// behindGraphs is at the head of the calls that wait for a stuck cuGraphLaunch
// only: launches, copies, fills, cuEventRecord (also into a stream that is
// capturing), cuGraphLaunch, cuGraphUpload, cuOccupancyMaxActiveBlocksPerMultiprocessor.
func (d *simulator) behindGraphs() { d.awaitZero(&d.stuck.graphs) }

// behindOwn is at the head of the calls that wait for a launch that is stuck in
// the same stream: cuStreamQuery, cuStreamWaitEvent, cuMemFreeAsync,
// cuEventRecord, launches, copies.
func (s *stream) behindOwn() { s.ctx.sim.awaitZero(&s.stuck) }

func (d *simulator) awaitZero(n *atomic.Int32) {
	if !d.config.hostile {
		return
	}
	for n.Load() > 0 {
		time.Sleep(pause)
	}
}

// pause is how long a call that waits here sleeps between two looks.
const pause = 100 * time.Microsecond

// awaitRoom waits until the queue of s takes a launch, or its context has
// failed.
func (s *stream) awaitRoom(graph bool) {
	s.behindOwn()
	d := s.ctx.sim
	if !d.config.hostile || s.hasRoom() {
		return
	}
	s.stuck.Add(1)
	defer s.stuck.Add(-1)
	d.stuck.launches.Add(1)
	defer d.stuck.launches.Add(-1)
	if graph {
		d.stuck.graphs.Add(1)
		defer d.stuck.graphs.Add(-1)
	}
	for !s.hasRoom() && s.ctx.result() == driver.CUDA_SUCCESS {
		time.Sleep(pause)
	}
}

func (s *stream) hasRoom() bool { return s.last.Load()-s.done.Load() < queueLimit }
