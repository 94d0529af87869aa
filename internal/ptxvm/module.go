// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// A Module is a loaded module: its variables have addresses. Its methods are
// safe for concurrent use.
type Module struct {
	device *Device
	ir     *ptxir.Module

	mu       sync.Mutex
	globals  map[*ptxir.Var]uint64 // guarded by mu while loading, then immutable
	kernels  map[string]*Kernel    // guarded by mu; decoded ones
	watched  map[string]*Kernel    // guarded by mu; decoded with checks
	unloaded bool                  // guarded by mu
	consts   []lane.Extent         // immutable once loaded; the .const variables
	// pointedTo is guarded by mu; see addressed.
	pointedTo []*ptxir.Func
}

// Load allocates and initialises the module's variables. A kernel is decoded
// when it is first asked for.
func (d *Device) Load(ir *ptxir.Module) (*Module, error) {
	m := &Module{device: d, ir: ir, globals: map[*ptxir.Var]uint64{}, kernels: map[string]*Kernel{}}
	if err := m.allocateVars(); err != nil {
		m.Unload()
		return nil, err
	}
	return m, nil
}

// Unload frees the module's variables. Its kernels must not be launched again.
func (m *Module) Unload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unloaded {
		return
	}
	m.unloaded = true
	for v, addr := range m.globals {
		if err := m.device.memory.Free(addr, "unloading module "+m.ir.Name); err != nil {
			panic("BUG: module variable " + v.Name + ": " + err.Error())
		}
	}
}

// Global returns a module-scope variable's address and size.
func (m *Module) Global(name string) (addr, size uint64, ok bool) {
	for _, v := range m.ir.Vars {
		if v.Name == name {
			addr, ok = m.globals[v]
			return addr, v.Size, ok
		}
	}
	return 0, 0, false
}

// KernelNames returns the names of the module's kernels in order of appearance.
func (m *Module) KernelNames() []string {
	names := make([]string, len(m.ir.Kernels))
	for i, k := range m.ir.Kernels {
		names[i] = k.Name
	}
	return names
}

// Kernel returns a kernel ready to launch. Errors: ErrNotFound, or why the
// kernel cannot run here (an unsupported instruction).
func (m *Module) Kernel(name string) (*Kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	for _, ir := range m.ir.Kernels {
		if ir.Name == name {
			k, err := m.decodeKernel(ir, false)
			if err != nil {
				return nil, err
			}
			m.kernels[name] = k
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: kernel %q in module %s", ErrNotFound, name, m.ir.Name)
}

// ErrNotFound is returned for a name that a module does not have.
var ErrNotFound = errors.New("ptxvm: not found")
