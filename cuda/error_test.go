// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestErrorText(t *testing.T) {
	err := error(&Error{Op: "cuMemAllocAsync", Result: ErrorOutOfMemory, Detail: "1073741824 bytes on device 0"})
	require.EqualError(t, err, "cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY: out of memory (1073741824 bytes on device 0)")
	require.ErrorIs(t, err, ErrorOutOfMemory)
	require.NotErrorIs(t, err, ErrorInvalidValue)

	require.EqualError(t, &Error{Op: "cuInit", Result: ErrorNoDevice}, "cuInit: CUDA_ERROR_NO_DEVICE: there is no CUDA device")
	require.EqualError(t, &Error{Op: "cuInit", Result: 12345}, "cuInit: CUresult 12345")
}

func TestClosedError(t *testing.T) {
	err := error(&ClosedError{`stream "upload"`})
	require.EqualError(t, err, `stream "upload" is closed`)
	require.ErrorIs(t, err, ErrClosed)
}

func TestResults(t *testing.T) {
	for r, name := range Results() {
		require.Equal(t, name, r.Name())
		require.NotEmpty(t, r.Explanation(), name)
		require.NotRegexp(t, `^[A-Z][a-z]|\.$`, r.Explanation(), "style of an explanation")
	}
	require.Equal(t, "CUDA_SUCCESS", Success.Name())
	require.Equal(t, ErrorIllegalAddress, Result(700))
}

// The codes that cuda.h, CUDA 13.0, says leave the process unusable.
func TestSticky(t *testing.T) {
	require.True(t, ErrorIllegalAddress.Sticky())
	require.True(t, ErrorAssert.Sticky())
	require.True(t, ErrorLaunchFailed.Sticky())
	require.False(t, Success.Sticky())
	require.False(t, ErrorOutOfMemory.Sticky())
	require.False(t, ErrorNotReady.Sticky())
	require.False(t, ErrorStreamCaptureInvalidated.Sticky())
}

func TestExplainedErrors(t *testing.T) {
	require.NoError(t, explained(nil, "never"))
	require.EqualError(t, explained(check("cuInit", driver.CUDA_ERROR_NO_DEVICE), "%d bytes", 5), "cuInit: CUDA_ERROR_NO_DEVICE: there is no CUDA device (5 bytes)")
	known := &Error{Op: "cuInit", Result: ErrorNoDevice, Detail: "known"}
	require.EqualError(t, explained(known, "%d bytes", 5), "cuInit: CUDA_ERROR_NO_DEVICE: there is no CUDA device (known)")
}

func TestCompileErrorShowsTheFirstError(t *testing.T) {
	tests := []struct{ name, log, want string }{
		{"warning before", "a.cu(1): warning: w\na.cu(3): error: e\n", "a.cu(3): error: e"},
		{"no error line", "\nsomething\nelse", "something"},
		{"silent", "", "the compiler said nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.EqualError(t, &CompileError{Name: "a.cu", Log: tt.log}, "compilation of a.cu failed: "+tt.want)
		})
	}
}

func TestPTXError(t *testing.T) {
	const text = ".version 7.0\n.target sm_75\n\tadd.u32 %r1, %r2;\n"
	tests := []struct {
		name, log    string
		line, column int
		want         string
	}{
		{
			name: "ptxas", log: "ptxas application ptx input, line 3; error   : Arguments mismatch for instruction 'add'\nptxas fatal   : Ptx assembly aborted due to errors",
			line: 3, want: "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: line 3: Arguments mismatch for instruction 'add'\n    add.u32 %r1, %r2;",
		},
		{
			name: "with column", log: "ptx: line 3, column 10: wants 3 operands\n\tadd",
			line: 3, column: 10, want: "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: line 3, column 10: wants 3 operands\n    add.u32 %r1, %r2;\n            ^",
		},
		{
			name: "with a column that the line lacks", log: "ptx: line 3, column 40: wants 3 operands\n\tadd",
			line: 3, column: 40, want: "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: line 3, column 40: wants 3 operands\n    add.u32 %r1, %r2;",
		},
		{
			name: "no place", log: "ptxas fatal   : Unresolved extern function 'f'\nmore",
			want: "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: ptxas fatal   : Unresolved extern function 'f'",
		},
		{name: "no log", want: "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: the PTX does not compile"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := newPTXError(ErrorInvalidPTX, tt.log, text)
			require.Equal(t, tt.line, err.Line)
			require.Equal(t, tt.column, err.Column)
			require.EqualError(t, err, tt.want)
			require.ErrorIs(t, err, ErrorInvalidPTX)
		})
	}
}

// A generated line can have megabytes: the error shows the part around the fault.
func TestPTXErrorOfALongLine(t *testing.T) {
	text := "\t" + strings.Repeat("é", 1_000_000) + "wrong" + strings.Repeat("é", 1_000_000)
	column := 1 + 2_000_000 + 1
	err := newPTXError(ErrorInvalidPTX, fmt.Sprintf("line 1, column %d: what", column), text)
	require.True(t, utf8.ValidString(err.Source))
	require.Contains(t, err.Source, "wrong")
	require.LessOrEqual(t, len(err.Source), 160)
	require.Equal(t, strings.Index(err.Source, "wrong"), 2*strings.Index(err.mark, "^"), "é has two bytes")
	err = newPTXError(ErrorInvalidPTX, "line 1; error : what", text)
	require.Equal(t, strings.Repeat("é", 80), err.Source)
	require.Empty(t, err.mark)
}

func TestDriverNotFoundErrorSaysWhatToDo(t *testing.T) {
	err := &DriverNotFoundError{Tried: []string{"libcuda.so.1"}, Reason: "cannot open shared object file"}
	require.EqualError(t, err, "no usable CUDA driver (tried libcuda.so.1): cannot open shared object file; "+
		`to run without a GPU choose the simulated driver with CUDAGO_DRIVER=sim or driver="sim"`)
}

func TestArgumentErrorKinds(t *testing.T) {
	var e *ArgumentError
	require.ErrorAs(t, badType("a", "wants %s", "b"), &e)
	require.Equal(t, WrongType, e.Kind)
	require.EqualError(t, e, "a wants b")
	require.ErrorAs(t, overflow("", "too much"), &e)
	require.Equal(t, Overflow, e.Kind)
	require.EqualError(t, e, "too much")
}
