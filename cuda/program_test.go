// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/cuda/internal/nvrtc"
)

// compilerStub keeps what it was given.
type compilerStub struct {
	archs    []int
	in       nvrtc.Input
	out      nvrtc.Output
	r        nvrtc.Result
	identity string
	calls    int
	during   func() // while it compiles
}

func (c *compilerStub) Version() (major, minor int) { return 13, 0 }
func (c *compilerStub) SupportedArchs() []int       { return c.archs }
func (c *compilerStub) Path() string                { return "stub" }
func (c *compilerStub) Identity() string            { return c.identity }
func (c *compilerStub) Compile(in nvrtc.Input) (nvrtc.Output, nvrtc.Result) {
	c.in = in
	c.calls++
	if c.during != nil {
		c.during()
	}
	return c.out, c.r
}

// openCompilerStub returns a device of compute capability 7.5 whose driver runs
// code of the given kind.
func openCompilerStub(t *testing.T, kind string, archs ...int) (*compilerStub, *Device) {
	t.Helper()
	_, c := openStub(t)
	compiler := &compilerStub{archs: archs, out: nvrtc.Output{PTX: []byte("ptx"), CUBIN: []byte("cubin"), LTOIR: []byte("lto")}}
	c.drv.codeKind = kind
	c.drv.compiler = func() (nvrtc.Compiler, error) { return compiler, nil }
	return compiler, c.dev
}

func TestCompileTargets(t *testing.T) {
	tests := []struct {
		name   string
		runs   string // what the driver runs
		archs  []int
		arch   string
		target string
		option string
		kind   string
		data   string
	}{
		{"what NVIDIA's driver runs", Cubin, []int{75, 90}, "", "", "sm_75", Cubin, "cubin"},
		{"what the simulated driver runs", PTX, []int{75, 90}, "", "", "compute_75", PTX, "ptx"},
		{"device newer than the compiler", Cubin, []int{60, 70, 80}, "", "", "compute_70", PTX, "ptx"},
		{"machine code all the same", Cubin, []int{60, 70, 80}, "", Cubin, "sm_70", Cubin, "cubin"},
		{"PTX on NVIDIA's driver", Cubin, []int{75}, "", PTX, "compute_75", PTX, "ptx"},
		{"machine code for elsewhere", PTX, []int{75}, "sm_90", Cubin, "sm_90", Cubin, "cubin"},
		{"virtual architecture", Cubin, []int{75}, "compute_75", "", "compute_75", PTX, "ptx"},
		{"link-time", Cubin, []int{75}, "", LTOIR, "compute_75", LTOIR, "lto"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			compiler, dev := openCompilerStub(t, tt.runs, tt.archs...)
			p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{Arch: tt.arch})
			require.NoError(t, err)
			code, err := p.Compile(dev, tt.target)
			require.NoError(t, err)
			require.Equal(t, "--gpu-architecture="+tt.option, compiler.in.Options[0])
			require.Equal(t, tt.kind, code.Kind)
			require.Equal(t, tt.data, string(code.Data))
			require.Equal(t, "ptx", code.PTX, "kept for the signatures")
		})
	}
}

func TestCompileOptions(t *testing.T) {
	compiler, dev := openCompilerStub(t, PTX, 75)
	p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{
		Name: "a.cu", Std: "c++17", IncludePath: []string{"inc"}, DefineMacro: []string{"N=1", "M"}, UndefineMacro: []string{"K"},
		Debug: true, LineInfo: true, FastMath: true, MaxRegisters: 32, Options: []string{"--fmad=false"}, NameExpressions: []string{"f<int>"},
	})
	require.NoError(t, err)
	_, err = p.Compile(dev, "")
	require.NoError(t, err)
	require.Equal(t, []string{
		"--gpu-architecture=compute_75", "--std=c++17", "--include-path=inc", "--define-macro=N=1", "--define-macro=M", "--undefine-macro=K",
		"--device-debug", "--generate-line-info", "--use_fast_math", "--maxrregcount=32", "--fmad=false",
	}, compiler.in.Options)
	require.Equal(t, "a.cu", compiler.in.Name)
	require.Equal(t, []string{"f<int>"}, compiler.in.NameExpressions)
}

func TestCompileErrors(t *testing.T) {
	compiler, dev := openCompilerStub(t, PTX, 75)
	p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{Name: "a.cu"})
	require.NoError(t, err)
	compiler.out = nvrtc.Output{Log: "a.cu(1): error: expected a ;\n1 error detected"}
	compiler.r = nvrtc.NVRTC_ERROR_COMPILATION
	_, err = p.Compile(dev, "")
	var bad *CompileError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, compiler.out.Log, bad.Log)
	require.Equal(t, compiler.in.Options, bad.Options)
	require.EqualError(t, err, "compilation of a.cu failed: a.cu(1): error: expected a ;")

	compiler.out = nvrtc.Output{Log: "unrecognized option --x found"}
	compiler.r = nvrtc.NVRTC_ERROR_INVALID_OPTION
	_, err = p.Compile(dev, "")
	var argument *ArgumentError
	require.ErrorAs(t, err, &argument)
	require.ErrorContains(t, err, "unrecognized option --x found")

	compiler.out = nvrtc.Output{}
	compiler.r = nvrtc.NVRTC_SUCCESS
	_, err = p.Compile(dev, "")
	require.ErrorContains(t, err, "the compiler gave no ptx")

	compiler.archs = []int{80}
	_, err = p.Compile(dev, "")
	require.EqualError(t, err, "device 0 has compute capability 7.5, which is too old for NVRTC 13.0")
}

func TestCompileWithoutACompiler(t *testing.T) {
	_, dev := openCompilerStub(t, PTX, 75)
	missing := &dl.NotFoundError{Tried: []dl.Attempt{{Place: "libnvrtc.so.13", Why: "no such file"}}}
	dev.Driver().compiler = func() (nvrtc.Compiler, error) { return nil, missing }
	p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{Name: "a.cu"})
	require.NoError(t, err)
	_, err = p.Compile(dev, "")
	var bad *CompileError
	require.ErrorAs(t, err, &bad)
	require.ErrorIs(t, err, missing)
	require.ErrorContains(t, err, "libnvrtc.so.13: no such file")
}

func TestProgramArguments(t *testing.T) {
	_, dev := openCompilerStub(t, PTX, 75)
	d := dev.Driver()
	_, err := d.NewProgram("", "fortran", ProgramOptions{})
	require.EqualError(t, err, `kind must be "c++", "ptx" or "nvvm", got "fortran"`)
	_, err = d.NewProgram("", PTX, ProgramOptions{NameExpressions: []string{"f"}})
	require.EqualError(t, err, "name expressions need C++ source")
	p, err := d.NewProgram(saxpyPTX, PTX, ProgramOptions{})
	require.NoError(t, err)
	_, err = p.Compile(dev, Cubin)
	require.ErrorContains(t, err, `target of PTX source must be "ptx", got "cubin"`)
	_, err = p.Compile(dev, "exe")
	require.ErrorContains(t, err, `got "exe"`)
	code, err := p.Compile(dev, "")
	require.NoError(t, err)
	require.Equal(t, saxpyPTX, code.PTX)

	p, err = d.NewProgram("", CPlusPlus, ProgramOptions{Arch: "compute_90"})
	require.NoError(t, err)
	_, err = p.Compile(dev, Cubin)
	require.EqualError(t, err, `arch must be of the form "sm_90" for machine code, got "compute_90"`)
}

// nvrtcPaths are where NVRTC's wheels are, for tests of the real compiler.
func nvrtcPaths(t *testing.T) []string {
	t.Helper()
	const script = `
import glob, os, sysconfig
for root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
    print("\n".join(glob.glob(os.path.join(root, "nvidia", "*", "lib"))))
`
	var paths []string
	if os.Getenv(nvrtc.PathVariable) == "" {
		if out, err := exec.Command("python3", "-c", script).Output(); err == nil {
			paths = strings.Fields(string(out))
		}
	}
	if _, err := nvrtc.Open(nvrtc.Options{Paths: paths}); err != nil {
		t.Skipf("set %s to run this: %v", nvrtc.PathVariable, err)
	}
	return paths
}

func TestCompileWithNVRTC(t *testing.T) {
	paths := nvrtcPaths(t)
	_, c := openStub(t)
	c.drv.codeKind = Cubin
	c.drv.compiler = func() (nvrtc.Compiler, error) { return nvrtc.Open(nvrtc.Options{Paths: paths}) }
	p, err := c.drv.NewProgram(`
template <class T> __global__ void scale(T *x, T a) { x[threadIdx.x] *= a; }
struct Pair { float a; int b[2]; };
extern "C" __global__ void take(Pair p, short s, double d) {}
`, CPlusPlus, ProgramOptions{NameExpressions: []string{"scale<float>"}})
	require.NoError(t, err)
	for _, target := range []string{"", PTX, Cubin, LTOIR} {
		code, err := p.Compile(c.dev, target)
		require.NoError(t, err, target)
		if target == LTOIR {
			continue // has no PTX, so that its kernels are not known
		}
		require.Equal(t, []string{"scale<float>", "take"}, code.Names())
		k, err := code.Kernel(c.dev, "scale<float>")
		require.NoError(t, err)
		require.Equal(t, "(u64, f32)", k.Signature().String())
		take, err := code.Kernel(c.dev, "take")
		require.NoError(t, err)
		require.Equal(t, "(b8[12], u16, f64)", take.Signature().String())
	}

	broken, err := c.drv.NewProgram("__global__ void f() { x; }", CPlusPlus, ProgramOptions{Name: "broken.cu"})
	require.NoError(t, err)
	_, err = broken.Compile(c.dev, "")
	require.EqualError(t, err, `compilation of broken.cu failed: broken.cu(1): error: identifier "x" is undefined`)
}
