// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// driverVersion is what cuDriverGetVersion returns: CUDA 13.0.
const driverVersion = 13000

// maxISA is the newest PTX ISA version that is accepted: any 9.x, since modules
// made by a newer minor release mostly use nothing new, and what is unknown is
// reported instruction by instruction.
const maxISA = 9

// Options says how to open the simulated driver. Its zero value is the default.
type Options struct {
	// Config is a list of settings as in CUDAGO_SIM:
	// "devices=2,cc=8.6,memory=8GiB,pageable=0,check=full,seed=7,steps=1e9,workers=2,hostile=1,faults=0.01".
	Config string

	// CallHost calls a host function, which is an address in C. Without it
	// cuLaunchHostFunc is not supported.
	CallHost func(fn driver.CUhostFn, userData uintptr)

	// MostHostCalls is how many host functions may hold a thread at once; the others
	// wait without one, in their order. 0: all.
	MostHostCalls int

	// Printf receives what kernels print. Default: standard output.
	Printf io.Writer

	// Crash is called where NVIDIA's driver would crash, instead of ending the
	// process: for tests. The call then continues.
	Crash func(text string)
}

// Open makes a simulated driver.
func Open(o Options) (driver.API, error) {
	c, err := parseConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if o.Printf == nil {
		o.Printf = os.Stdout
	}
	d := &simulator{
		config:   c,
		callHost: o.CallHost,
		printf:   &lockedWriter{w: o.Printf},
		crash:    o.Crash,
		threads:  map[int]*thread{},
		captures: map[*capture]struct{}{},
		shuffle:  newShuffler(c.seed),
	}
	if o.MostHostCalls > 0 {
		d.hostCalls = make(chan struct{}, o.MostHostCalls)
	}
	d.setter = d.setConditional
	if c.full {
		d.check.on.Store(uint32(checkAll))
	}
	for i := range c.devices {
		d.devices = append(d.devices, newDevice(d, i))
	}
	d.connect()
	return d, nil
}

// simulator implements driver.API. Calls without a method are not supported.
type simulator struct {
	driver.Base

	config    config
	callHost  func(fn driver.CUhostFn, userData uintptr)
	hostCalls chan struct{} // has one for each host function that holds a thread; nil: all may
	printf    io.Writer
	crash     func(text string)
	devices   []*device // immutable
	space     space
	virtual   virtualSpace
	peerings  peerings

	check   checker
	traffic contextTraffic
	shuffle *shuffler // nil without a seed
	stuck   stuck

	initialized atomic.Bool
	workers     sync.WaitGroup // running streams

	contexts  table[driver.CUcontext, context]
	streams   table[driver.CUstream, stream]
	greens    table[driver.CUgreenCtx, greenContext]
	events    table[driver.CUevent, event]
	modules   table[driver.CUmodule, module]
	functions table[driver.CUfunction, function]
	pools     table[driver.CUmemoryPool, pool]
	graphs    table[driver.CUgraph, graph]
	objects   table[driver.CUuserObject, userObject]
	nodes     table[driver.CUgraphNode, node]
	execs     table[driver.CUgraphExec, graphExec]

	semaphores  table[driver.CUexternalSemaphore, externalSemaphore]
	externals   table[driver.CUexternalMemory, externalMemory]
	textures    table[driver.CUtexObject, allocation]
	surfaces    table[driver.CUsurfObject, allocation]
	arrays      table[driver.CUarray, array]
	mipmaps     table[driver.CUmipmappedArray, mipmappedArray]
	descriptors table[driver.CUdevResourceDesc, greenDescriptor]
	conditions  table[driver.CUgraphConditionalHandle, condition]
	// setter is setConditional, made once so that a launch allocates nothing.
	setter func(handle uint64, value uint32) bool // immutable

	threadsMu sync.RWMutex
	threads   map[int]*thread // guarded by threadsMu
	callbacks atomic.Int32    // host functions that run now

	eventFile eventFile

	importMu sync.Mutex               // held from the look whether something is imported to its import
	imports  map[uint64]*importedPool // guarded by importMu; by the pool's number

	// graphMu guards the structure of all graphs, and all captures.
	graphMu  sync.Mutex
	captures map[*capture]struct{} // guarded by graphMu; begun and not ended
	// capturing counts captures, so that calls outside any pay one load.
	capturing atomic.Int32
}

var _ driver.API = (*simulator)(nil)

// Name returns "sim".
func (d *simulator) Name() string { return "sim" }

// EntryPoint returns zero: nothing here has a C address.
func (d *simulator) EntryPoint(string) uintptr { return 0 }

// Close ends all work, running kernels included, and unmaps all memory.
func (d *simulator) Close() error {
	for _, dev := range d.devices {
		dev.cancel.close()
		if c := dev.primaryContext(); c != nil {
			c.fail(&failure{code: driver.CUDA_ERROR_DEINITIALIZED, text: "the driver was closed"})
		}
	}
	d.workers.Wait()
	for _, dev := range d.devices {
		dev.vm.Close()
	}
	d.space.close()
	d.closeFiles()
	d.virtual.close()
	d.eventFile.close()
	d.initialized.Store(false)
	return nil
}

// closeFiles lets go of the files that handles hold.
func (d *simulator) closeFiles() {
	for _, p := range d.pools.removeIf(func(p *pool) bool { return p.shared != nil }) {
		d.forgetPool(p)
	}
	for _, m := range d.externals.removeIf(func(*externalMemory) bool { return true }) {
		m.file.letGo()
	}
}

// lockedWriter lets kernels of several streams print whole messages.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
