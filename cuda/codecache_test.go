// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/nvrtc"
)

// cached returns a compiler that counts, a cache, and a function that compiles
// a source through it.
func cached(t *testing.T) (*compilerStub, *CodeCache, func(source string, o ProgramOptions) *ObjectCode) {
	t.Helper()
	compiler, dev := openCompilerStub(t, PTX, 75)
	c := &CodeCache{}
	c.Configure(CodeCacheConfig{MemoryLimit: 1 << 20, Dir: t.TempDir(), DiskLimit: 1 << 20})
	return compiler, c, func(source string, o ProgramOptions) *ObjectCode {
		t.Helper()
		p, err := dev.Driver().NewProgram(source, CPlusPlus, o)
		require.NoError(t, err)
		code, warning, err := c.Compile(p, dev, "")
		require.NoError(t, err)
		require.Empty(t, warning)
		return code
	}
}

func TestCodeCacheCompilesOnce(t *testing.T) {
	compiler, c, compile := cached(t)
	compiler.out.Log = "a warning"
	compiler.out.LoweredNames = map[string]string{"f<int>": "_Z1f"}
	first := compile("source", ProgramOptions{})
	second := compile("source", ProgramOptions{})
	require.Equal(t, 1, compiler.calls)
	require.NotSame(t, first, second, "each has modules, and variables, of its own")
	require.Equal(t, first.Data, second.Data)
	require.Equal(t, "a warning", second.Log)
	require.Equal(t, "_Z1f", second.Symbol("f<int>"))
	require.EqualValues(t, 1, c.Stats().MemoryHits)

	c.Configure(c.cacheConfig(t)) // forgets what is in memory
	third := compile("source", ProgramOptions{})
	require.Equal(t, 1, compiler.calls)
	require.Equal(t, first.Data, third.Data)
	require.Equal(t, "_Z1f", third.Symbol("f<int>"))
	require.EqualValues(t, 1, c.Stats().DiskHits)
}

// cacheConfig returns a configuration with the folder of the test before it.
func (c *CodeCache) cacheConfig(t *testing.T) CodeCacheConfig {
	t.Helper()
	return CodeCacheConfig{MemoryLimit: 1 << 20, Dir: c.cache.Dir(), DiskLimit: 1 << 20}
}

func TestCodeCacheKnowsAllThatMatters(t *testing.T) {
	compiler, _, compile := cached(t)
	base := ProgramOptions{Name: "a.cu"}
	compile("source", base)
	for name, change := range map[string]func(*ProgramOptions){
		"name":     func(o *ProgramOptions) { o.Name = "b.cu" },
		"arch":     func(o *ProgramOptions) { o.Arch = "compute_80" },
		"std":      func(o *ProgramOptions) { o.Std = "c++20" },
		"macro":    func(o *ProgramOptions) { o.DefineMacro = []string{"A"} },
		"undefine": func(o *ProgramOptions) { o.UndefineMacro = []string{"A"} },
		"debug":    func(o *ProgramOptions) { o.Debug = true },
		"raw":      func(o *ProgramOptions) { o.Options = []string{"-w"} },
		"names":    func(o *ProgramOptions) { o.NameExpressions = []string{"f"} },
		"headers":  func(o *ProgramOptions) { o.Headers = []Header{{Name: "a.h"}} },
		"header":   func(o *ProgramOptions) { o.Headers = []Header{{Name: "a.h", Source: "int x;"}} },
	} {
		before := compiler.calls
		o := base
		change(&o)
		compile("source", o)
		require.Equal(t, before+1, compiler.calls, name)
		compile("source", o)
		require.Equal(t, before+1, compiler.calls, name)
	}
	before := compiler.calls
	compile("Source", base)
	compiler.identity = "a later build"
	compile("source", base)
	require.Equal(t, before+2, compiler.calls)
}

func TestCodeCacheFollowsFiles(t *testing.T) {
	compiler, c, compile := cached(t)
	first, second := t.TempDir(), t.TempDir()
	inner := filepath.Join(second, "inner.h")
	require.NoError(t, os.WriteFile(filepath.Join(second, "outer.h"), []byte("# /* ( */ include \"inner.h\""), 0o600))
	require.NoError(t, os.WriteFile(inner, []byte("int x;"), 0o600))
	o := ProgramOptions{IncludePath: []string{first, second}}
	compileAgain := func() bool {
		before := compiler.calls
		compile("#include <outer.h>", o)
		return compiler.calls > before
	}
	require.True(t, compileAgain())
	require.False(t, compileAgain())
	require.NoError(t, os.WriteFile(inner, []byte("int y;"), 0o600)) // as long, and perhaps at the same time
	require.True(t, compileAgain())
	require.False(t, compileAgain())
	now := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(inner, now, now))
	require.False(t, compileAgain(), "only its time has changed")
	require.NoError(t, os.WriteFile(filepath.Join(first, "outer.h"), nil, 0o600))
	require.True(t, compileAgain(), "it would be included instead")
	require.NoError(t, os.Remove(inner))
	require.True(t, compileAgain(), "the compiler knows what that means")
	c.Configure(c.cacheConfig(t))
	require.False(t, compileAgain())
}

func TestCodeCacheDoesNotKeepWhatChanges(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "late.h"), []byte("int built = __LINE__; const char *at = __TIME__;"), 0o600))
	tests := map[string]struct {
		source string
		o      ProgramOptions
	}{
		"time":            {"const char *t = __TIME__;", ProgramOptions{}},
		"time in a file":  {"#include \"late.h\"", ProgramOptions{IncludePath: []string{dir}}},
		"time in a macro": {"", ProgramOptions{DefineMacro: []string{"T=__DATE__"}}},
		"macro":           {"#include FILE", ProgramOptions{DefineMacro: []string{"FILE=<a.h>"}}},
		"precompiled":     {"", ProgramOptions{Options: []string{"--create-pch=a.pch"}}},
		"report":          {"", ProgramOptions{Options: []string{"--time", "a.csv"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			compiler, c, compile := cached(t)
			compile(tt.source, tt.o)
			compile(tt.source, tt.o)
			require.Equal(t, 2, compiler.calls)
			require.EqualValues(t, 2, c.Stats().Uncacheable)
			require.Zero(t, c.Stats().DiskEntries)
		})
	}
}

// A file that changes while the compiler runs may have been read before or after.
func TestCodeCacheDoesNotKeepARace(t *testing.T) {
	compiler, _, compile := cached(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "a.h")
	require.NoError(t, os.WriteFile(file, []byte("int x;"), 0o600))
	o := ProgramOptions{Options: []string{"-I" + dir, "-include", "a.h"}}
	compiler.during = func() { require.NoError(t, os.WriteFile(file, []byte("int y;"), 0o600)) }
	compile("", o)
	compiler.during = nil
	compile("", o)
	require.Equal(t, 2, compiler.calls)
	compile("", o)
	require.Equal(t, 2, compiler.calls)
}

func TestCodeCacheKeepsNoErrors(t *testing.T) {
	compiler, dev := openCompilerStub(t, PTX, 75)
	c := &CodeCache{}
	c.Configure(CodeCacheConfig{MemoryLimit: 1 << 20})
	p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{})
	require.NoError(t, err)
	compiler.r = nvrtc.NVRTC_ERROR_COMPILATION
	for range 2 {
		_, _, err = c.Compile(p, dev, "")
		require.Error(t, err)
	}
	require.Equal(t, 2, compiler.calls)
	_, _, err = c.Compile(p, dev, "exe")
	require.ErrorContains(t, err, `got "exe"`)
}

func TestCodeCacheThatIsOff(t *testing.T) {
	compiler, dev := openCompilerStub(t, PTX, 75)
	var c CodeCache
	p, err := dev.Driver().NewProgram("source", CPlusPlus, ProgramOptions{})
	require.NoError(t, err)
	for range 2 {
		_, _, err = c.Compile(p, dev, "")
		require.NoError(t, err)
	}
	require.Equal(t, 2, compiler.calls)
	require.Zero(t, c.Stats())
	require.NoError(t, c.Clear())
}
