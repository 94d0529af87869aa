// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

const saxpyPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n) { ret; }
.visible .entry take(.param .align 4 .b8 s[12], .param .u8 c) { ret; }
`

func TestSignatureFromPTX(t *testing.T) {
	_, c := openStub(t)
	code, err := ObjectCodeFrom(PTX, []byte(saxpyPTX+"\x00"))
	require.NoError(t, err)
	require.Equal(t, []string{"saxpy", "take"}, code.Names())
	k, err := code.Kernel(c.dev, "saxpy")
	require.NoError(t, err)
	require.Equal(t, "(f32, u64, u64, u32)", k.Signature().String())
	require.EqualValues(t, 28, k.Signature().Size())
	require.Equal(t, Param{Name: "y", Kind: "u64", Offset: 16, Size: 8, Align: 8}, k.Signature()[2])
	require.Equal(t, `kernel "saxpy"(f32, u64, u64, u32)`, k.String())
	take, err := code.Kernel(c.dev, "take")
	require.NoError(t, err)
	require.Equal(t, "(b8[12], u8)", take.Signature().String())
}

func TestParametersFromDebugInformation(t *testing.T) {
	text, err := os.ReadFile("../internal/ptx/testdata/debug/types.ptx")
	require.NoError(t, err)
	code, err := ObjectCodeFrom(PTX, text)
	require.NoError(t, err)
	names, types := code.DebugParams("structs")
	require.Equal(t, []string{"p", "f"}, names)
	require.Equal(t, []string{"struct Params", "struct float4"}, types)
	names, types = code.DebugParams("none")
	require.Empty(t, append(names, types...))
}

func TestSignatureFromTheDriver(t *testing.T) {
	_, c := openStub(t)
	code, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "one")
	require.NoError(t, err)
	require.Equal(t, Signature{
		{Kind: "b64", Offset: 0, Size: 8, Align: 8},
		{Kind: "b8[]", Offset: 8, Size: 12, Align: 1},
	}, k.Signature())
}

func TestObjectCodeIsLoadedOncePerDevice(t *testing.T) {
	stub, c := openStub(t)
	code, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	modules := make([]*Module, 8)
	var wg sync.WaitGroup
	for i := range modules {
		wg.Go(func() {
			m, err := code.Load(c.dev)
			if err != nil {
				t.Error(err)
			}
			modules[i] = m
		})
	}
	wg.Wait()
	for _, m := range modules {
		require.Same(t, modules[0], m)
	}
	require.Equal(t, 1, stub.count("cuModuleLoadDataEx"))
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	m, err := code.Load(other)
	require.NoError(t, err)
	require.NotSame(t, modules[0], m)

	require.NoError(t, code.Close())
	require.NoError(t, code.Close(), "closing twice")
	require.Equal(t, 2, stub.count("cuModuleUnload"))
	_, err = code.Load(c.dev)
	require.ErrorIs(t, err, ErrClosed)
}

func TestKernelKeepsItsModule(t *testing.T) {
	stub, c := openStub(t)
	code, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "one")
	require.NoError(t, err)
	require.NoError(t, k.Retain())
	require.NoError(t, code.Close())
	require.NoError(t, k.Close())
	require.NoError(t, k.Close(), "closing twice")
	require.Zero(t, stub.count("cuModuleUnload"), "retained")
	_, err = k.MaxThreadsPerBlock()
	require.ErrorIs(t, err, ErrClosed)
	k.Release()
	require.Equal(t, 1, stub.count("cuModuleUnload"))
	require.ErrorIs(t, k.Retain(), ErrClosed)
	require.Empty(t, c.drv.Live())
}

func TestUnknownKernelListsWhatThereIs(t *testing.T) {
	stub, c := openStub(t)
	cubin, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	defer cubin.Close()
	_, err = cubin.Kernel(c.dev, "missing")
	require.ErrorIs(t, err, ErrorNotFound)
	require.ErrorContains(t, err, `no kernel "missing"; there are one, two`)
	require.NoError(t, cubin.Close())
	require.Zero(t, stub.living(), "the failed call holds nothing")

	ptx, err := ObjectCodeFrom(PTX, []byte(saxpyPTX))
	require.NoError(t, err)
	_, err = ptx.Kernel(c.dev, "missing")
	require.ErrorContains(t, err, "there are saxpy, take")
}

func TestNameExpressions(t *testing.T) {
	code := &ObjectCode{Kind: PTX, PTX: saxpyPTX, names: map[string]string{"scale<float>": "saxpy"}}
	require.Equal(t, "saxpy", code.Symbol("scale<float>"))
	require.Equal(t, "take", code.Symbol("take"))
	require.Equal(t, []string{"scale<float>", "take"}, code.Names())
}

func TestFailedLoadIsTriedAgain(t *testing.T) {
	stub, c := openStub(t)
	code, err := ObjectCodeFrom(PTX, []byte(saxpyPTX))
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call == "cuModuleLoadDataEx" {
			return driver.CUDA_ERROR_INVALID_PTX
		}
		return driver.CUDA_SUCCESS
	}
	_, err = code.Load(c.dev)
	var bad *PTXError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, 2, bad.Line)
	require.Equal(t, ".target sm_75", bad.Source)
	stub.on = nil
	_, err = code.Load(c.dev)
	require.NoError(t, err)
}

// Who closes the code while it is being loaded gets the module unloaded.
func TestCloseWhileLoading(t *testing.T) {
	stub, c := openStub(t)
	code, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	loading, release := make(chan struct{}), make(chan struct{})
	stub.on = func(call string) driver.CUresult {
		if call == "cuModuleLoadDataEx" {
			close(loading)
			<-release
		}
		return driver.CUDA_SUCCESS
	}
	result := make(chan error)
	go func() { _, err := code.Load(c.dev); result <- err }()
	<-loading
	require.NoError(t, code.Close())
	close(release)
	require.ErrorIs(t, <-result, ErrClosed)
	require.Zero(t, stub.living())
}

func TestObjectCodeOfItsState(t *testing.T) {
	ptx, err := ObjectCodeFrom(PTX, []byte(saxpyPTX))
	require.NoError(t, err)
	cubin := &ObjectCode{Kind: Cubin, Data: []byte{0, 255}, PTX: "\xff", Log: "a\x00b", names: map[string]string{"f<int>": "_Z1f"}}
	for _, code := range []*ObjectCode{ptx, cubin} {
		again, err := ObjectCodeFromState(code.State())
		require.NoError(t, err)
		require.Equal(t, code, again)
	}
	for _, state := range []string{"", "{}", "[]", `{"Kind": "ptx"}`, `{"Kind": "x", "Data": "YQ=="}`} {
		_, err := ObjectCodeFromState([]byte(state))
		var refused *ArgumentError
		require.ErrorAs(t, err, &refused, state)
	}
}

func TestObjectCodeArguments(t *testing.T) {
	_, c := openStub(t)
	_, err := ObjectCodeFrom("elf", []byte("x"))
	require.EqualError(t, err, `kind must be "ptx", "cubin", "fatbin", "ltoir", "object" or "library", got "elf"`)
	_, err = ObjectCodeFrom(PTX, nil)
	require.EqualError(t, err, "data must not be empty")
	lto, err := ObjectCodeFrom(LTOIR, []byte("x"))
	require.NoError(t, err)
	_, err = lto.Load(c.dev)
	require.ErrorIs(t, err, ErrorNotSupported)
}
