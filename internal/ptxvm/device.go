// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"runtime"
	"sync"

	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// Config describes a simulated device. Zero fields take their defaults.
type Config struct {
	Multiprocessors int    // 8; what %nsmid says
	Workers         int    // GOMAXPROCS; blocks that run at once
	MemoryBytes     uint64 // 2 GiB
	CCMajor         int    // 7
	CCMinor         int    // 5

	// SharedBytes is the most shared memory a block may have, static and
	// dynamic together, without what the system reserves: 48 KiB, or 64 KiB with compute capability 7.5, where the
	// driver has to grant what exceeds 48 KiB. The VM checks this limit only.
	SharedBytes uint32 // 64 KiB
	// StackBytes is the local memory of one thread for recursive kernels, whose
	// need is not known beforehand.
	StackBytes uint32 // 16 KiB
	// StepBudget is how many times a launch may go round loops and call functions,
	// counted for each warp, before it is reported as stuck; 0 is no limit.
	StepBudget uint64
}

func (c Config) withDefaults() Config {
	if c.Multiprocessors <= 0 {
		c.Multiprocessors = 8
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = 2 << 30
	}
	if c.CCMajor == 0 {
		c.CCMajor, c.CCMinor = 7, 5
	}
	if c.SharedBytes == 0 {
		c.SharedBytes = 64 << 10
	}
	if c.StackBytes == 0 {
		c.StackBytes = 16 << 10
	}
	return c
}

// reservedShared is what the system takes of each block's shared memory.
func (c *Config) reservedShared() uint64 { return uint64(ReservedShared(c.CCMajor)) }

// ReservedShared is what the system takes of each block's shared memory, in front of
// the block's own, with that major compute capability.
func ReservedShared(major int) int32 {
	if major >= 8 {
		return lane.ReservedShared
	}
	return 0
}

// A Device is one simulated device. Its methods are safe for concurrent use.
type Device struct {
	config     Config
	memory     *memory.Memory
	priorities priorities
	// helpers holds one token for each worker beyond the launching goroutine
	// itself, so that launches in several streams do not multiply the workers.
	helpers chan struct{}

	mu     sync.Mutex
	closed bool   // guarded by mu
	idle   []*cta // guarded by mu; worker state, kept for the next launch
	gridID uint64 // guarded by mu
}

// NewDevice makes a device. It reserves nothing until the first allocation.
func NewDevice(c Config) *Device {
	c = c.withDefaults()
	return &Device{
		config:  c,
		memory:  memory.New(c.MemoryBytes),
		helpers: make(chan struct{}, max(c.Workers-1, 0)),
	}
}

// Config returns the device's description with defaults filled in.
func (d *Device) Config() Config { return d.config }

// Memory returns the device's memory.
func (d *Device) Memory() *memory.Memory { return d.memory }

// Close unmaps all memory. No launch may be running, and none may follow.
func (d *Device) Close() {
	d.mu.Lock()
	d.closed = true
	d.idle = nil
	d.mu.Unlock()
	d.memory.Close()
}
