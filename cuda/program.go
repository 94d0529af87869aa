// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda/internal/nvrtc"
	"github.com/cudago/cudago/internal/pathname"
)

// Kinds of source of a [Program], and kinds and targets of [ObjectCode].
const (
	CPlusPlus = "c++"    // CUDA C++
	NVVM      = "nvvm"   // NVVM IR: LLVM's, as bitcode or text; of a Program alone
	PTX       = "ptx"    // NVIDIA's assembly language; any later device runs it
	Cubin     = "cubin"  // machine code of one architecture
	Fatbin    = "fatbin" // several of the above in one
	LTOIR     = "ltoir"  // input of a link-time optimizer; cannot be loaded

	Object  = "object"  // a host object file with device code; cannot be loaded
	Library = "library" // an archive of those; cannot be loaded
)

// A Program is source code with its options.
//
// It holds nothing of the driver and needs no Close. Safe for concurrent use.
type Program struct {
	drv    *Driver
	source string
	kind   string
	o      ProgramOptions
}

// ProgramOptions says how a [Program] is compiled. The zero value is the
// compiler's defaults for the device.
type ProgramOptions struct {
	// Name is the source file name in messages.
	Name string
	// Arch is the architecture, such as "sm_90" or "compute_90". Empty means the
	// device's.
	Arch string
	// Std is the language standard, such as "c++17".
	Std string
	// IncludePath are the directories that #include searches.
	IncludePath []string
	// DefineMacro are macros, as "NAME" or "NAME=VALUE".
	DefineMacro []string
	// UndefineMacro are macros that the compiler must not define.
	UndefineMacro []string
	// Debug adds debug information and turns off optimizations of device code,
	// LineInfo only line numbers.
	Debug, LineInfo bool
	// FastMath trades precision for speed.
	FastMath bool
	// MaxRegisters limits the registers per thread. Zero means no limit.
	MaxRegisters int
	// Options are passed to the compiler as they are, after all others.
	Options []string
	// Headers are files that the source may include, which need not exist. They
	// come before those that do.
	Headers []Header
	// NameExpressions are kernels and variables as C++ spells them, such as
	// "scale<float>". Naming a template instantiates it, and [ObjectCode.Kernel]
	// takes the same spelling.
	NameExpressions []string
	// Modules are compiled together with the source, for [NVVM].
	Modules []IRModule
	// Libdevice says whether NVIDIA's functions __nv_* are linked in, for [NVVM];
	// nil if the IR names any.
	Libdevice *bool
}

// Header is a file to include, in memory.
type Header = nvrtc.Header

// NewProgram returns a program of the given kind, [CPlusPlus], [PTX] or [NVVM],
// whose source may be bytes. Nothing is compiled yet.
//
// Errors: an [*ArgumentError] for another kind, or for options that a source of
// the kind cannot have.
func (d *Driver) NewProgram(source, kind string, o ProgramOptions) (*Program, error) {
	switch kind {
	case CPlusPlus:
	case PTX, NVVM:
		if len(o.NameExpressions) > 0 {
			return nil, badValue("name expressions", "need C++ source")
		}
	default:
		return nil, badValue("kind", `must be "c++", "ptx" or "nvvm", got %q`, kind)
	}
	if o.Name == "" {
		o.Name = "program"
	}
	return &Program{d, source, kind, o}, nil
}

// Kind returns the kind of source.
func (p *Program) Kind() string { return p.kind }

// Source returns the source.
func (p *Program) Source() string { return p.source }

// Compile compiles p for dev. target is the kind of the result: [PTX], [Cubin],
// [LTOIR], or empty for the kind that this driver runs; that is machine code on
// NVIDIA's, unless the compiler is older than the device, and PTX on the
// simulated one. NVVM IR becomes PTX by default, and machine code where this
// driver is older than that PTX.
//
// Blocks until done, which may take seconds; the first call looks for the compiler.
//
// Errors: a [*CompileError], with the log or with the places where the compiler was
// looked for; an [*ArgumentError] for a target that is impossible for the kind
// of source, or an option that the compiler refuses.
func (p *Program) Compile(dev *Device, target string) (*ObjectCode, error) {
	code, _, err := new(CodeCache).Compile(p, dev, target)
	return code, err
}

// asPTX is code of PTX source, which nothing compiles.
func (p *Program) asPTX(target string) (*ObjectCode, error) {
	if target != "" && target != PTX {
		return nil, badValue("target", `of PTX source must be "ptx", got %q; the driver turns PTX into machine code when it loads it`, target)
	}
	return ObjectCodeFrom(PTX, []byte(p.source))
}

// prepare says what the compiler gets. The first call looks for NVRTC.
func (p *Program) prepare(dev *Device, target string) (*job, error) {
	compiler, err := p.drv.compiler()
	if err != nil {
		return nil, &CompileError{Name: p.o.Name, Err: err}
	}
	in, kind, err := p.input(compiler, dev, target)
	if err != nil {
		return nil, err
	}
	folder, _ := pathname.Current() // without one, relative names are looked for in vain
	return &job{p, compiler, in, kind, folder}, nil
}

func checkTarget(target string) error {
	if !slices.Contains([]string{"", PTX, Cubin, LTOIR}, target) {
		return badValue("target", `must be "ptx", "cubin", "ltoir" or empty, got %q`, target)
	}
	return nil
}

// run implements [work]: it compiles.
func (j *job) run() (*ObjectCode, error) {
	p, in, kind := j.p, j.in, j.kind
	out, r := j.compiler.Compile(in)
	if r != nvrtc.NVRTC_SUCCESS {
		return nil, p.compileError(in, out, r)
	}
	code := &ObjectCode{Kind: kind, PTX: string(out.PTX), Log: out.Log, names: out.LoweredNames}
	switch kind {
	case PTX:
		code.Data = out.PTX
	case Cubin:
		code.Data = out.CUBIN
	case LTOIR:
		code.Data = out.LTOIR
	}
	if len(code.Data) == 0 {
		return nil, &CompileError{Name: p.o.Name, Log: "the compiler gave no " + kind, Options: in.Options}
	}
	return code, nil
}

// input is what the compiler gets, and the kind of code that it produces.
func (p *Program) input(compiler nvrtc.Compiler, dev *Device, target string) (nvrtc.Input, string, error) {
	arch, kind := p.o.Arch, target
	if kind == "" {
		kind = p.drv.codeKind
	}
	if arch == "" {
		a, newer, err := deviceArch(compiler, dev)
		if err != nil {
			return nvrtc.Input{}, "", err
		}
		if newer && target == "" {
			// The compiler cannot produce machine code for this device, but the
			// driver can, from PTX for an older one.
			kind = PTX
		}
		if kind == Cubin {
			arch = fmt.Sprintf("sm_%d", a)
		} else {
			arch = fmt.Sprintf("compute_%d", a)
		}
	} else if kind == Cubin && strings.HasPrefix(arch, "compute_") {
		if target == Cubin {
			return nvrtc.Input{}, "", badValue("arch", `must be of the form "sm_90" for machine code, got %q`, arch)
		}
		kind = PTX
	}
	options := []string{"--gpu-architecture=" + arch}
	if kind == LTOIR {
		options = append(options, "-dlto")
	}
	options = append(options, p.o.flags()...)
	return nvrtc.Input{
		Source: p.source, Name: p.o.Name, Options: options, Headers: p.o.Headers, NameExpressions: p.o.NameExpressions,
	}, kind, nil
}

// deviceArch returns the newest architecture that the compiler knows and dev
// runs, as 86, and whether dev is newer than it.
func deviceArch(compiler nvrtc.Compiler, dev *Device) (arch int, newer bool, err error) {
	major, minor, err := dev.ComputeCapability()
	if err != nil {
		return 0, false, err
	}
	capability := 10*major + minor
	for _, a := range compiler.SupportedArchs() {
		if a <= capability {
			arch = max(arch, a)
		}
	}
	if arch == 0 {
		major, minor := compiler.Version()
		return 0, false, badValue("", "%v has compute capability %d.%d, which is too old for NVRTC %d.%d", dev, capability/10, capability%10, major, minor)
	}
	return arch, arch < capability, nil
}

// flags are the compiler's options that do not depend on the device.
func (o *ProgramOptions) flags() []string {
	var f []string
	if o.Std != "" {
		f = append(f, "--std="+o.Std)
	}
	for _, dir := range o.IncludePath {
		f = append(f, "--include-path="+dir)
	}
	for _, m := range o.DefineMacro {
		f = append(f, "--define-macro="+m)
	}
	for _, m := range o.UndefineMacro {
		f = append(f, "--undefine-macro="+m)
	}
	for _, b := range []struct {
		on   bool
		flag string
	}{{o.Debug, "--device-debug"}, {o.LineInfo, "--generate-line-info"}, {o.FastMath, "--use_fast_math"}} {
		if b.on {
			f = append(f, b.flag)
		}
	}
	if o.MaxRegisters > 0 {
		f = append(f, fmt.Sprintf("--maxrregcount=%d", o.MaxRegisters))
	}
	return append(f, o.Options...)
}

func (p *Program) compileError(in nvrtc.Input, out nvrtc.Output, r nvrtc.Result) error {
	log := out.Log
	if r == nvrtc.NVRTC_ERROR_INVALID_OPTION {
		if log == "" {
			log = "the compiler does not say which"
		}
		return badValue("options", "are not all accepted by NVRTC: %s (given: %s)", log, strings.Join(in.Options, " "))
	}
	if log == "" {
		log = r.String()
	}
	return &CompileError{Name: p.o.Name, Log: log, Options: in.Options, Op: out.Failed, Code: int32(r), CodeName: r.String()}
}
