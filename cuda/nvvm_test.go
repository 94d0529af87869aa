// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/cuda/internal/nvjitlink"
	"github.com/cudago/cudago/cuda/internal/nvvm"
)

// irStub keeps what it was given. It knows what is in archs.
type irStub struct {
	archs     []string
	in        nvvm.Input
	out       nvvm.Output
	r         nvvm.Result
	libdevice error
	identity  string
	calls     int
}

func (c *irStub) Identity() string { return c.identity }
func (c *irStub) Knows(arch string) bool {
	for _, a := range c.archs {
		if a == arch {
			return true
		}
	}
	return false
}
func (c *irStub) Libdevice() ([]byte, error) { return []byte("bitcode"), c.libdevice }
func (c *irStub) Compile(in nvvm.Input) (nvvm.Output, nvvm.Result) {
	c.in = in
	c.calls++
	return c.out, c.r
}

// linkerStub makes machine code of anything.
type linkerStub struct {
	in       nvjitlink.Input
	identity string
	calls    int
}

func (l *linkerStub) Version() (major, minor int) { return 13, 0 }
func (l *linkerStub) Identity() string            { return l.identity }
func (l *linkerStub) Link(in nvjitlink.Input) (nvjitlink.Output, nvjitlink.Result) {
	l.in = in
	l.calls++
	return nvjitlink.Output{Code: []byte("cubin"), Log: "linked"}, nvjitlink.NVJITLINK_SUCCESS
}

// openIRStub returns a device of compute capability 7.5 of a driver for CUDA 13.0,
// and a compiler of PTX 9.0.
func openIRStub(t *testing.T, kind string) (*irStub, *linkerStub, *Device) {
	t.Helper()
	_, c := openStub(t)
	compiler := &irStub{
		archs: []string{"compute_75", "compute_90"},
		out:   nvvm.Output{Code: []byte("// text\n.version 9.0\n"), Log: "compiled"},
	}
	linker := &linkerStub{}
	c.drv.codeKind, c.drv.version = kind, 13000
	c.drv.irCompiler = func() (nvvm.Compiler, error) { return compiler, nil }
	c.drv.linker = func() (nvjitlink.Linker, error) { return linker, nil }
	return compiler, linker, c.dev
}

func irProgram(t *testing.T, dev *Device, source string, o ProgramOptions) *Program {
	t.Helper()
	p, err := dev.Driver().NewProgram(source, NVVM, o)
	require.NoError(t, err)
	return p
}

func TestIRTargets(t *testing.T) {
	tests := []struct {
		name, runs, ptx, target string
		kind                    string
		linked                  bool
	}{
		{"PTX that the driver loads", Cubin, "9.0", "", PTX, false},
		{"PTX that the driver is too old for", Cubin, "9.1", "", Cubin, true},
		{"the same, asked for", Cubin, "9.1", PTX, PTX, false},
		{"the simulated driver", PTX, "9.1", "", PTX, false},
		{"machine code", PTX, "9.0", Cubin, Cubin, true},
		{"for the linker", Cubin, "9.0", LTOIR, LTOIR, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			compiler, linker, dev := openIRStub(t, tt.runs)
			compiler.out.Code = []byte("//\n.version " + tt.ptx + "\n")
			code, err := irProgram(t, dev, "ir", ProgramOptions{}).Compile(dev, tt.target)
			require.NoError(t, err)
			require.Equal(t, tt.kind, code.Kind)
			require.Equal(t, "-arch=compute_75", compiler.in.Options[0])
			require.Equal(t, tt.kind == LTOIR, compiler.in.Options[len(compiler.in.Options)-1] == "-gen-lto")
			require.Equal(t, tt.linked, linker.calls == 1)
			if tt.linked {
				require.Equal(t, "cubin", string(code.Data))
				require.Equal(t, []string{"-arch=sm_75"}, linker.in.Options)
				require.Equal(t, "compiled\nlinked", code.Log)
			}
		})
	}
}

func TestNewestPTX(t *testing.T) {
	for cuda, want := range map[int]int{12040: 84, 12050: 85, 12060: 85, 12080: 87, 12090: 88, 13000: 90, 13050: 95, 14000: 100} {
		require.Equal(t, want, newestPTX(cuda), cuda)
	}
}

func TestIRWithoutALinker(t *testing.T) {
	compiler, _, dev := openIRStub(t, Cubin)
	compiler.out.Code = []byte(".version 9.5\n")
	missing := &dl.NotFoundError{Tried: []dl.Attempt{{Place: "/nowhere", Why: "no such file"}}, Advice: "get cudago[link]"}
	dev.Driver().linker = func() (nvjitlink.Linker, error) { return nil, missing }
	_, err := irProgram(t, dev, "ir", ProgramOptions{Name: "a.ll"}).Compile(dev, "")
	require.ErrorIs(t, err, missing)
	require.ErrorContains(t, err, "compilation of a.ll failed: libnvvm makes .version 9.5, which this driver, for CUDA 13.0, is too old for")
	require.ErrorContains(t, err, "cudago[link]")
}

func TestIRLibdevice(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		source string
		given  *bool
		linked bool
	}{
		{"declare float @__nv_sinf(float)", nil, true},
		{"declare float @sinf(float)", nil, false},
		{"declare float @sinf(float)", &yes, true},
		{"declare float @__nv_sinf(float)", &no, false},
	} {
		compiler, _, dev := openIRStub(t, PTX)
		_, err := irProgram(t, dev, tt.source, ProgramOptions{Libdevice: tt.given}).Compile(dev, "")
		require.NoError(t, err)
		require.Equal(t, tt.linked, len(compiler.in.Libraries) == 1, tt.source)
		compiler.libdevice = &nvvm.LibdeviceError{Library: "/lib/libnvvm.so.4", Why: "none", Advice: "get one"}
		_, err = irProgram(t, dev, tt.source, ProgramOptions{Libdevice: tt.given}).Compile(dev, "")
		if !tt.linked {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "libdevice.10.bc, which has the functions called __nv_*, was not found: none; get one, with libnvvm (here /lib/libnvvm.so.4)")
	}
}

func TestIRFailures(t *testing.T) {
	compiler, _, dev := openIRStub(t, PTX)
	compiler.r = nvvm.NVVM_ERROR_INVALID_IR
	compiler.out = nvvm.Output{Log: "a.ll (1, 2): parse expected type"}
	p := irProgram(t, dev, "ir", ProgramOptions{Name: "a.ll", Debug: true, FastMath: true})
	_, err := p.Compile(dev, "")
	var bad *CompileError
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, err, "compilation of a.ll failed: a.ll (1, 2): parse expected type")
	require.Equal(t, "-arch=compute_75 -ftz=1 -prec-div=0 -prec-sqrt=0 -fma=1 -g -opt=0", strings.Join(bad.Options, " "))

	compiler.r, compiler.out.Log = nvvm.NVVM_ERROR_INVALID_OPTION, "-x is an unsupported option"
	_, err = p.Compile(dev, "")
	require.ErrorContains(t, err, "options are not all accepted by libnvvm: -x is an unsupported option")
	compiler.r, compiler.out.Log = nvvm.NVVM_SUCCESS, ""
	_, err = p.Compile(dev, "")
	require.ErrorContains(t, err, "the compiler gave no ptx")
	compiler.archs = []string{"compute_80"}
	_, err = p.Compile(dev, "")
	require.ErrorContains(t, err, "has compute capability 7.5, which is too old for this libnvvm")
	_, err = irProgram(t, dev, "", ProgramOptions{Options: []string{"-gen-lto"}}).Compile(dev, "")
	require.ErrorContains(t, err, `give "ltoir" as the target`)
	_, err = dev.Driver().NewProgram("", NVVM, ProgramOptions{NameExpressions: []string{"f"}})
	require.EqualError(t, err, "name expressions need C++ source")
}

func TestCodeCacheKnowsAllThatMattersOfIR(t *testing.T) {
	compiler, linker, dev := openIRStub(t, Cubin)
	c := &CodeCache{}
	c.Configure(CodeCacheConfig{MemoryLimit: 1 << 20})
	compile := func(source, target string, o ProgramOptions) {
		t.Helper()
		_, _, err := c.Compile(irProgram(t, dev, source, o), dev, target)
		require.NoError(t, err)
	}
	compile("ir", Cubin, ProgramOptions{})
	compile("ir", Cubin, ProgramOptions{})
	require.Equal(t, []int{1, 1}, []int{compiler.calls, linker.calls})
	linker.identity = "another"
	compile("ir", Cubin, ProgramOptions{})
	require.Equal(t, []int{1, 2}, []int{compiler.calls, linker.calls}, "the PTX is the same")
	compiler.identity = "another"
	compile("ir", Cubin, ProgramOptions{})
	require.Equal(t, []int{2, 2}, []int{compiler.calls, linker.calls}, "it made the same")
	yes := true
	for i, o := range []ProgramOptions{
		{Name: "b.ll"}, {Debug: true}, {FastMath: true}, {Arch: "sm_90"}, {Options: []string{"-fma=0"}},
		{Libdevice: &yes}, {Modules: []IRModule{{Name: "a"}}}, {Modules: []IRModule{{Name: "a", Source: []byte("b")}}},
	} {
		compile("ir", PTX, o)
		compile("ir", PTX, o)
		require.Equal(t, 3+i, compiler.calls, "%+v", o)
	}
	compile("ir", PTX, ProgramOptions{})
	compile("ir", "", ProgramOptions{})
	require.Equal(t, 10, compiler.calls)
	compile("other", "", ProgramOptions{})
	compile("ir", LTOIR, ProgramOptions{})
	require.Equal(t, 12, compiler.calls)
}
