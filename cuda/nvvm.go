// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda/internal/codecache"
	"github.com/cudago/cudago/cuda/internal/nvjitlink"
	"github.com/cudago/cudago/cuda/internal/nvvm"
)

// IRModule is a piece of a program of NVVM IR: LLVM's bitcode or its text.
type IRModule = nvvm.Module

// libdeviceName is what messages call libdevice.
const libdeviceName = "libdevice.10.bc"

// compileIR compiles NVVM IR through the cache, in one or two steps: libnvvm makes
// no machine code, which nvJitLink makes of its PTX.
func (p *Program) compileIR(c *CodeCache, dev *Device, target string) (code *ObjectCode, warning string, err error) {
	w, err := p.prepareIR(dev, target)
	if err != nil {
		return nil, "", err
	}
	code, warning, err = c.do(w)
	if err != nil || code.Kind != PTX || target == PTX || target == "" && p.drv.loads(code.PTX) {
		return code, warning, err
	}
	more := ""
	code, more, err = p.assembleIR(c, dev, code, target)
	if warning == "" {
		warning = more
	}
	return code, warning, err
}

// prepareIR says what libnvvm gets. The first call looks for it.
func (p *Program) prepareIR(dev *Device, target string) (*irWork, error) {
	if slices.Contains(p.o.Options, "-gen-lto") {
		return nil, badValue("options", `must not have "-gen-lto": give "ltoir" as the target instead`)
	}
	compiler, err := p.drv.irCompiler()
	if err != nil {
		return nil, &CompileError{Name: p.o.Name, Err: err}
	}
	arch, err := p.irArch(compiler, dev)
	if err != nil {
		return nil, err
	}
	in := nvvm.Input{
		Modules: append([]IRModule{{Name: p.o.Name, Source: []byte(p.source)}}, p.o.Modules...),
		Options: append([]string{"-arch=" + arch}, p.o.irFlags()...),
	}
	if target == LTOIR {
		in.Options = append(in.Options, "-gen-lto")
	}
	w := &irWork{p, compiler, in, PTX}
	if target == LTOIR {
		w.kind = LTOIR
	}
	if p.o.wantsLibdevice(in.Modules) {
		data, err := compiler.Libdevice()
		if err != nil {
			return nil, &CompileError{Name: p.o.Name, Err: err}
		}
		w.in.Libraries = []IRModule{{Name: libdeviceName, Source: data}}
	}
	return w, nil
}

// irArchs are the compute capabilities that a libnvvm may know, from the newest.
var irArchs = []int{121, 120, 110, 103, 101, 100, 90, 89, 88, 87, 86, 80, 75, 72, 70, 62, 61, 60, 53, 52, 50}

// irArch is the architecture to compile for: the given one, else the newest that
// libnvvm knows and dev runs.
func (p *Program) irArch(compiler nvvm.Compiler, dev *Device) (string, error) {
	if p.o.Arch != "" {
		return strings.Replace(p.o.Arch, "sm_", "compute_", 1), nil
	}
	major, minor, err := dev.ComputeCapability()
	if err != nil {
		return "", err
	}
	for _, a := range irArchs {
		if arch := fmt.Sprintf("compute_%d", a); a <= 10*major+minor && compiler.Knows(arch) {
			return arch, nil
		}
	}
	return "", badValue("", "%v has compute capability %d.%d, which is too old for this libnvvm", dev, major, minor)
}

// irFlags are libnvvm's options that do not depend on the device.
func (o *ProgramOptions) irFlags() []string {
	var f []string
	if o.FastMath {
		f = append(f, "-ftz=1", "-prec-div=0", "-prec-sqrt=0", "-fma=1")
	}
	if o.Debug {
		f = append(f, "-g")
		// "Full debug support is only valid with '-opt=0'" (nvvm.h).
		if !slices.ContainsFunc(o.Options, func(text string) bool { return strings.HasPrefix(text, "-opt=") }) {
			f = append(f, "-opt=0")
		}
	}
	return append(f, o.Options...)
}

// wantsLibdevice reports whether a module names a function of libdevice: names
// stand in bitcode as they do in text. If none is called, nothing of it is linked in.
func (o *ProgramOptions) wantsLibdevice(modules []IRModule) bool {
	if o.Libdevice != nil {
		return *o.Libdevice
	}
	return slices.ContainsFunc(modules, func(m IRModule) bool { return bytes.Contains(m.Source, []byte("__nv_")) })
}

// irWork is NVVM IR as libnvvm gets it.
type irWork struct {
	p        *Program
	compiler nvvm.Compiler
	in       nvvm.Input
	kind     string // of the code that it produces
}

// key implements [work]. Libdevice's file is part of what tells compilers apart.
func (w *irWork) key() codecache.Key {
	var modules []string
	for _, m := range w.in.Modules {
		modules = append(modules, m.Name, string(m.Source))
	}
	libraries := strconv.Itoa(len(w.in.Libraries))
	return codecache.NewKey([]string{NVVM, w.compiler.Identity(), w.kind, libraries}, w.in.Options, modules)
}

// files implements [work]: IR includes nothing.
func (w *irWork) files() (codecache.Files, bool) { return codecache.Files{}, true }

// run implements [work].
func (w *irWork) run() (*ObjectCode, error) {
	out, r := w.compiler.Compile(w.in)
	options := w.in.Options
	switch {
	case r == nvvm.NVVM_ERROR_INVALID_OPTION:
		return nil, badValue("options", "are not all accepted by libnvvm: %s (given: %s)", out.Log, strings.Join(options, " "))
	case r != nvvm.NVVM_SUCCESS:
		log := out.Log
		if log == "" {
			log = r.String()
		}
		return nil, &CompileError{Name: w.p.o.Name, Log: log, Options: options, Op: out.Failed, Code: int32(r), CodeName: r.String()}
	case len(out.Code) == 0:
		return nil, &CompileError{Name: w.p.o.Name, Log: "the compiler gave no " + w.kind, Options: options}
	}
	code := &ObjectCode{Kind: w.kind, Data: out.Code, Log: out.Log}
	if w.kind == PTX {
		code.PTX = string(out.Code)
	}
	return code, nil
}

// ptxVersion is the directive that PTX begins with (PTX ISA, ".version").
var ptxVersion = regexp.MustCompile(`(?m)^\s*\.version\s+(\d+)\.(\d+)`)

// loads reports whether the driver accepts the version of PTX; true if that is not
// known, so that the driver decides.
func (d *Driver) loads(text string) bool {
	m := ptxVersion.FindStringSubmatch(text)
	if m == nil || d.codeKind == PTX {
		return true
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return 10*major+minor <= newestPTX(d.version)
}

// newestPTX is the version of PTX, as 84, that a driver for a CUDA version loads
// (PTX ISA, "Release Notes"): PTX 8.4 came with CUDA 12.4, 8.5 with 12.5 and 12.6,
// 8.8 with 12.9, 9.0 with 13.0, and since then each CUDA has one of its own.
func newestPTX(cuda int) int {
	major, minor := cuda/1000, cuda%1000/10
	if major >= 13 {
		return 10*(major-4) + minor
	}
	if major == 12 && minor >= 6 {
		minor--
	}
	return 80 + minor
}

// assembleIR makes machine code of what libnvvm made.
func (p *Program) assembleIR(c *CodeCache, dev *Device, code *ObjectCode, target string) (*ObjectCode, string, error) {
	linker, err := p.drv.linker()
	if err != nil {
		if target == "" {
			err = fmt.Errorf("libnvvm makes %s, which this driver, for CUDA %d.%d, is too old for, so that machine code must be made of it: %w",
				strings.TrimSpace(ptxVersion.FindString(code.PTX)), p.drv.version/1000, p.drv.version%1000/10, err)
		}
		return nil, "", &CompileError{Name: p.o.Name, Err: err}
	}
	o := LinkOptions{Name: p.o.Name, Arch: strings.Replace(p.o.Arch, "compute_", "sm_", 1)}
	if p.o.Debug {
		o.Options = []string{"-g"}
	}
	codes := []*ObjectCode{code}
	in, err := o.input(dev, codes, false)
	if err != nil {
		return nil, "", err
	}
	return c.do(&assembly{o, linker, dev, codes, in})
}

// assembly is PTX as nvJitLink gets it, to make machine code.
type assembly struct {
	o      LinkOptions
	linker nvjitlink.Linker
	dev    *Device
	codes  []*ObjectCode
	in     nvjitlink.Input
}

// key implements [work].
func (a *assembly) key() codecache.Key {
	var texts []string
	for _, code := range a.codes {
		texts = append(texts, code.PTX, code.Log)
	}
	return codecache.NewKey([]string{"link", a.linker.Identity(), a.o.Name}, a.in.Options, texts)
}

// files implements [work].
func (a *assembly) files() (codecache.Files, bool) { return codecache.Files{}, true }

// run implements [work]. The log is that of both steps.
func (a *assembly) run() (*ObjectCode, error) {
	made, err := a.o.run(a.linker, a.dev, a.codes, false)
	if err != nil {
		return nil, err
	}
	made.Log = strings.TrimSpace(a.codes[0].Log + "\n" + made.Log)
	return made, nil
}
