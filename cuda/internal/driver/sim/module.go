// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// module is a loaded module.
type module struct {
	ctx      *context
	ir       *ptxir.Module
	vm       *ptxvm.Module
	target   int // .target sm_75 is 75
	unloaded atomic.Bool

	mu        sync.Mutex
	functions map[string]*function // guarded by mu; those that were asked for
}

// binaryMagics start images of machine code: ELF, and the fat binary wrapper
// of fatbinary_section.h, CUDA 12.4.
var binaryMagics = []string{"\x7fELF", "\x50\xED\x55\xBA"}

// newModule reads an image. The log says why it was refused, or which kernels
// of it cannot run here.
func newModule(c *context, image []byte) (m *module, log string, r driver.CUresult) {
	for _, magic := range binaryMagics {
		if bytes.HasPrefix(image, []byte(magic)) {
			return nil, "the simulated driver runs PTX and this is machine code: compile to PTX", driver.CUDA_ERROR_NO_BINARY_FOR_GPU
		}
	}
	text := string(bytes.TrimRight(image, "\x00"))
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		return nil, "the image is neither PTX text nor a known kind of machine code", driver.CUDA_ERROR_INVALID_IMAGE
	}
	ir, err := ptxir.Load("module", text)
	if err != nil {
		return nil, err.Error(), driver.CUDA_ERROR_INVALID_PTX
	}
	if log, r := c.accepts(ir); r != driver.CUDA_SUCCESS {
		return nil, log, r
	}
	vm, err := c.dev.vm.Load(ir)
	if errors.Is(err, memory.ErrOutOfMemory) {
		return nil, err.Error(), driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	if err != nil {
		return nil, err.Error(), driver.CUDA_ERROR_INVALID_PTX
	}
	m = &module{ctx: c, ir: ir, vm: vm, functions: map[string]*function{}}
	m.target, _ = parseTarget(ir.Target)
	return m, unsupported(ir), driver.CUDA_SUCCESS
}

// accepts refuses code of which no kernel could run.
func (c *context) accepts(ir *ptxir.Module) (log string, r driver.CUresult) {
	if ir.Version[0] > maxISA {
		return fmt.Sprintf("module: .version %d.%d is newer than PTX ISA %d.x, the newest that this driver accepts",
			ir.Version[0], ir.Version[1], maxISA), driver.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	}
	config := &c.sim.config
	if !runsOn(ir.Target, config.major, config.minor) {
		return fmt.Sprintf("module: .target %s does not run on sm_%d%d", ir.Target, config.major, config.minor),
			driver.CUDA_ERROR_NO_BINARY_FOR_GPU
	}
	if n := len(ir.Unsupported()); n > 0 && n == len(ir.Kernels) {
		return unsupported(ir), driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return "", driver.CUDA_SUCCESS
}

// runsOn reports whether PTX for a target runs on a device. From the PTX ISA,
// "PTX Module Directives: .target": later devices run it, but for targets with
// the suffix a (that device only) and f (that family).
func runsOn(target string, major, minor int) bool {
	cc, suffix := parseTarget(target)
	if cc == 0 {
		return false
	}
	device := 10*major + minor
	switch suffix {
	case "":
		return cc <= device
	case "a":
		return cc == device
	case "f":
		return cc <= device && cc/10 == major
	}
	return false
}

// parseTarget splits sm_90a into 90 and a. The number is 0 for what is no
// target.
func parseTarget(target string) (cc int, suffix string) {
	digits := strings.TrimPrefix(target, "sm_")
	suffix = strings.TrimLeft(digits, "0123456789")
	cc, err := strconv.Atoi(strings.TrimSuffix(digits, suffix))
	if err != nil {
		return 0, ""
	}
	return cc, suffix
}

func unsupported(ir *ptxir.Module) string {
	var lines []string
	for _, e := range ir.Unsupported() {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

func (m *module) unload() {
	m.unloaded.Store(true)
	m.vm.Unload()
}

func (d *simulator) CuModuleLoadDataEx(image []byte) (driver.CUmodule, string, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, "", r
	}
	m, log, r := newModule(c, image)
	if r != driver.CUDA_SUCCESS {
		return 0, log, r
	}
	h := d.modules.add(m)
	if c.result() == driver.CUDA_ERROR_CONTEXT_IS_DESTROYED && d.modules.take(h) != nil {
		m.unload() // created during a reset of its context, which missed it
		return 0, "", driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return h, log, r
}

// CuModuleUnload waits for the context's work, since it may run the module's
// kernels. A graph that still has them fails when it is launched.
func (d *simulator) CuModuleUnload(h driver.CUmodule) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if d.modules.get(h) == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	m := d.modules.take(h)
	if m == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	d.functions.removeIf(func(f *function) bool { return f.module == m })
	m.ctx.drain()
	m.unload()
	return m.ctx.result()
}

func (d *simulator) module(h driver.CUmodule) (*module, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	m := d.modules.get(h)
	if m == nil {
		return nil, driver.CUDA_ERROR_INVALID_HANDLE
	}
	return m, m.ctx.result()
}

// CuModuleGetFunction returns NOT_SUPPORTED for a kernel that cannot run here;
// the module's log says why.
func (d *simulator) CuModuleGetFunction(h driver.CUmodule, name string) (driver.CUfunction, driver.CUresult) {
	m, r := d.module(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f.handle, r
	}
	f, r := newFunction(m, name)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	f.handle = d.functions.add(f)
	m.functions[name] = f
	return f.handle, r
}

func (d *simulator) CuModuleGetGlobal(h driver.CUmodule, name string) (driver.CUdeviceptr, uint64, driver.CUresult) {
	m, r := d.module(h)
	if r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	d.behindLaunches()
	addr, size, ok := m.vm.Global(name)
	switch {
	case ok:
		return driver.CUdeviceptr(addr), size, r
	case slices.Contains(m.vm.KernelNames(), name):
		return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return 0, 0, driver.CUDA_ERROR_NOT_FOUND
}

func (d *simulator) CuModuleFunctionNames(h driver.CUmodule) ([]string, driver.CUresult) {
	m, r := d.module(h)
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return m.vm.KernelNames(), r
}
