// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptx"
)

// A Module is code loaded on a device. Its [ObjectCode] and each of its open
// [Kernel]s hold it; the last holder unloads it.
//
// Safe for concurrent use.
type Module struct {
	ctx  *Context
	code *ObjectCode
	h    driver.CUmodule // immutable
	log  string          // the driver's output while it loaded the code
	refs refs
}

// loadModule loads code on dev for one holder.
func loadModule(code *ObjectCode, dev *Device) (*Module, error) {
	if code.Kind == LTOIR {
		return nil, &Error{Op: loadOp, Result: ErrorNotSupported, Detail: "LTO-IR must be linked before it can be loaded"}
	}
	c, err := dev.Context()
	if err != nil {
		return nil, err
	}
	leave, err := c.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer leave()
	h, log, r := c.drv.api.CuModuleLoadDataEx(code.Data)
	if r != driver.CUDA_SUCCESS {
		return nil, c.loadError(code, log, r)
	}
	c.drv.live.modules.Add(1)
	m := &Module{ctx: c, code: code, h: h, log: log}
	m.refs.init()
	return m, nil
}

// loadOp is the driver call that loads code.
const loadOp = "cuModuleLoadDataEx"

// loadError distinguishes invalid PTX from other failures.
func (c *Context) loadError(code *ObjectCode, log string, r driver.CUresult) error {
	switch r {
	case driver.CUDA_ERROR_INVALID_PTX, driver.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
		if code.Kind != PTX { // a driver takes for PTX what is no machine code it knows
			return c.fail(loadOp, driver.CUDA_ERROR_INVALID_IMAGE, fmt.Sprintf("given as a %s, and begins with %.16q; ObjectCode.from_ptx takes PTX", code.Kind, code.Data))
		}
		return newPTXError(Result(r), log, code.PTX)
	case driver.CUDA_ERROR_INVALID_IMAGE, driver.CUDA_ERROR_INVALID_SOURCE:
		if code.Kind == PTX {
			return newPTXError(Result(r), log, code.PTX)
		}
	case driver.CUDA_ERROR_OUT_OF_MEMORY:
		return c.failAlloc(loadOp, r, uint64(len(code.Data)))
	}
	return c.fail(loadOp, r, strings.TrimSpace(log))
}

// logPlace finds the first complaint with a place: ptxas writes "ptxas
// application ptx input, line 5; error : text", the simulated driver
// "line 5, column 7: text".
var logPlace = regexp.MustCompile(`line (\d+)(?:, column (\d+))?\s*[;:]\s*(?:(?:error|fatal)\s*:\s*)?(.*)`)

func newPTXError(r Result, log, text string) *PTXError {
	e := &PTXError{Op: loadOp, Result: r, Log: strings.TrimSpace(log)}
	m := logPlace.FindStringSubmatch(e.Log)
	if m == nil {
		e.Message, _, _ = strings.Cut(e.Log, "\n")
		return e
	}
	e.Line, _ = strconv.Atoi(m[1])
	e.Column, _ = strconv.Atoi(m[2])
	e.Message = strings.TrimSpace(m[3])
	n := 0
	for line := range strings.Lines(text) {
		if n++; n == e.Line {
			indent := len(line) - len(strings.TrimLeft(line, " \t"))
			e.Source, e.mark = ptx.Excerpt(strings.TrimSpace(line), e.Column-indent)
			break
		}
	}
	return e
}

// Context returns the context that m is loaded in.
func (m *Module) Context() *Context { return m.ctx }

// Device returns the device that m is loaded on.
func (m *Module) Device() *Device { return m.ctx.dev }

// Code returns what was loaded.
func (m *Module) Code() *ObjectCode { return m.code }

// Handle returns the CUmodule, which is valid as long as m has a holder.
func (m *Module) Handle() uintptr { return uintptr(m.h) }

// Retain adds a holder.
//
// Errors: [ErrClosed] if m has already been unloaded.
func (m *Module) Retain() error {
	if m.ctx.IsLost() {
		return m.ctx.lostError("module")
	}
	if !m.refs.retain() {
		return &ClosedError{"module"}
	}
	return nil
}

// Release undoes one Retain. The last holder unloads m, which waits for
// launches of its kernels. It calls cuModuleUnload.
func (m *Module) Release() {
	if !m.refs.release() {
		return
	}
	m.ctx.dispose("cuModuleUnload", "module", nil, &m.ctx.drv.live.modules, func(api driver.API) driver.CUresult {
		return api.CuModuleUnload(m.h)
	}, nil)
}

// KernelNames lists the kernels. It calls cuModuleEnumerateFunctions.
func (m *Module) KernelNames() ([]string, error) {
	if err := m.Retain(); err != nil {
		return nil, err
	}
	defer m.Release()
	return call1(m.ctx, "cuModuleEnumerateFunctions", func(api driver.API) ([]string, driver.CUresult) {
		return api.CuModuleFunctionNames(m.h)
	})
}

// A Variable is where one of a module is.
type Variable struct {
	Ptr  uint64
	Size uint64 // in bytes
	// Constant says that it is in constant memory, which kernels do not change. Only
	// PTX tells.
	Constant bool
	// Managed says that the host accesses it as well, at its own address.
	Managed bool
}

// Global returns a variable of the module, by its name, as for [Module.Kernel].
// It calls cuModuleGetGlobal.
//
// Lifetime: the address is valid as long as m has a holder.
//
// Errors: [ErrorNotFound], with the names that there are.
func (m *Module) Global(name string) (Variable, error) {
	if err := m.Retain(); err != nil {
		return Variable{}, err
	}
	defer m.Release()
	leave, err := m.ctx.Enter()
	if err != nil {
		return Variable{}, err
	}
	defer leave()
	var size uint64
	p, symbol, err := lookUp(m, "cuModuleGetGlobal", "variable", name, m.code.variables, func(symbol string) (p driver.CUdeviceptr, r driver.CUresult) {
		p, size, r = m.ctx.drv.api.CuModuleGetGlobal(m.h, symbol)
		if r == driver.CUDA_ERROR_INVALID_VALUE { // for a kernel's name
			r = driver.CUDA_ERROR_NOT_FOUND
		}
		return p, r
	})
	if err != nil {
		return Variable{}, err
	}
	managed, err := m.ctx.isManaged(p)
	return Variable{Ptr: uint64(p), Size: size, Constant: m.code.isConstant(symbol), Managed: managed}, err
}

// isManaged reports whether memory is managed. The caller has entered the context.
func (c *Context) isManaged(p driver.CUdeviceptr) (bool, error) {
	v, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p)
	if r == driver.CUDA_ERROR_INVALID_VALUE { // of memory that the driver says nothing of
		return false, nil
	}
	return r == driver.CUDA_SUCCESS && v != 0, explained(c.check("cuPointerGetAttribute", r), "the kind of memory at %#x", uint64(p))
}

// Kernel returns a kernel by its symbol, its name expression, or any spelling of
// what C++ calls it. It calls cuModuleGetFunction.
//
// Lifetime: the caller must Close the Kernel, which keeps m loaded.
//
// Errors: [ErrorNotFound], with the names that there are; [ErrorNotSupported],
// with the reason, for a kernel that the simulated driver cannot run.
func (m *Module) Kernel(name string) (*Kernel, error) {
	if err := m.Retain(); err != nil {
		return nil, err
	}
	k, err := m.kernel(name)
	if err != nil {
		m.Release()
		return nil, err
	}
	return k, nil
}

// kernel makes a Kernel that takes over one holder of m.
func (m *Module) kernel(name string) (*Kernel, error) {
	leave, err := m.ctx.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	f, symbol, err := lookUp(m, "cuModuleGetFunction", "kernel", name, m.kernelSymbols, func(symbol string) (driver.CUfunction, driver.CUresult) {
		return m.ctx.drv.api.CuModuleGetFunction(m.h, symbol)
	})
	if err != nil {
		return nil, err
	}
	k := &Kernel{m: m, h: f, name: name, symbol: symbol}
	if k.signature, err = m.signature(f, symbol); err != nil {
		return nil, err
	}
	return k, nil
}

// loadOutput returns the driver's output about a kernel while it loaded the module,
// for a message: the simulated driver reports there why a kernel cannot run.
func (m *Module) loadOutput(symbol string) string {
	of := regexp.MustCompile(`\bkernel ` + regexp.QuoteMeta(symbol) + `(?:[,; ]|$)`)
	for line := range strings.Lines(m.log) {
		if line = strings.TrimSpace(line); of.MatchString(line) {
			return ": " + line
		}
	}
	return ""
}

// listNames lists the existing kernels, and the variables if they are known, for
// a message.
func (m *Module) listNames() string {
	variables := m.code.Variables()
	if len(variables) == 0 {
		return m.listKernels()
	}
	return m.listKernels() + " as kernels, and " + list(variables) + " as variables"
}

// listKernels lists the existing kernels, for a message.
func (m *Module) listKernels() string {
	names := m.code.Names()
	if len(names) == 0 {
		var r driver.CUresult
		if names, r = m.ctx.drv.api.CuModuleFunctionNames(m.h); r != driver.CUDA_SUCCESS {
			return "the module does not list its kernels"
		}
	}
	if len(names) == 0 {
		return "the module has no kernel"
	}
	return "there are " + list(readable(names))
}

// list joins the first names, and says how many there are besides. Names of
// templates are long; one that nobody would read to its end is cut.
func list(names []string) string {
	const most, longest = 20, 4 << 10
	shown := slices.Clone(names[:min(len(names), most)])
	for i, name := range shown {
		if len(name) > longest {
			shown[i] = fmt.Sprintf("%s... (%d characters)", name[:longest], len(name))
		}
	}
	text := strings.Join(shown, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// signature returns what is known of a kernel's parameters: everything from
// PTX, only offsets and sizes from the driver.
//
// Preconditions: the context is current.
func (m *Module) signature(f driver.CUfunction, symbol string) (Signature, error) {
	if params, ok := m.code.entries()[symbol]; ok {
		return signatureFromPTX(params), nil
	}
	var sig Signature
	for i := uint64(0); ; i++ {
		offset, size, r := m.ctx.drv.api.CuFuncGetParamInfo(f, i)
		if r == driver.CUDA_ERROR_INVALID_VALUE {
			return sig, nil // past the last one
		}
		if r != driver.CUDA_SUCCESS {
			return nil, m.ctx.fail("cuFuncGetParamInfo", r, fmt.Sprintf("parameter %d of %s", i, symbol))
		}
		sig = append(sig, Param{Kind: untypedKind(size), Offset: uint32(offset), Size: uint32(size), Align: naturalAlign(size)})
	}
}
