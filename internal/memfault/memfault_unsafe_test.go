// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memfault

import (
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestAFaultIsAPanicWithItsAddress(t *testing.T) {
	mem, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(mem)) }()
	section := Begin()
	defer section.End()
	defer section.Panics()()
	defer func() {
		addr, ok := Address(recover())
		require.True(t, ok)
		require.Equal(t, uintptr(unsafe.Pointer(&mem[8])), addr)
	}()
	mem[8]++
}

func TestOtherPanicsAreNone(t *testing.T) {
	for _, p := range []any{nil, "text", syscall.ENOMEM} {
		_, ok := Address(p)
		require.False(t, ok, p)
	}
	defer func() {
		_, ok := Address(recover())
		require.False(t, ok)
	}()
	empty := []int{}
	empty[len(t.Name())]++
}

func TestTheBorderIsToldInPairs(t *testing.T) {
	defer known.Store(nil)
	var begun, ended int
	SetBorder(func() { begun++ }, func() { ended++ })
	section := Begin()
	require.Equal(t, []int{1, 0}, []int{begun, ended})
	section.End()
	require.Equal(t, []int{1, 1}, []int{begun, ended})
}

func TestTextIsWhereGoFunctionsAre(t *testing.T) {
	begin, end := Text()
	for _, f := range []any{TestTextIsWhereGoFunctionsAre, runtime.GC, strings.Cut, reflect.ValueOf, syscall.Mmap} {
		pc := reflect.ValueOf(f).Pointer()
		require.GreaterOrEqual(t, pc, begin)
		require.Less(t, pc, end)
	}
	require.NotNil(t, runtime.FuncForPC(begin))
	require.NotNil(t, runtime.FuncForPC(end-1))
	require.Nil(t, runtime.FuncForPC(begin-1))
	require.Nil(t, runtime.FuncForPC(end))
}
