// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, dir string) *Cache {
	t.Helper()
	c := &Cache{}
	c.Configure(Config{MemoryLimit: 1 << 20, Dir: dir, DiskLimit: 1 << 20})
	return c
}

func file(dir string, k Key) string { return filepath.Join(dir, name, k.String()) }

// get returns an entry that must be there.
func get(t *testing.T, c *Cache, k Key) *Entry {
	t.Helper()
	e, warning := c.Get(k)
	require.Empty(t, warning)
	require.NotNil(t, e)
	return e
}

func TestKeysDiffer(t *testing.T) {
	seen := map[Key]bool{}
	for _, lists := range [][][]string{
		{}, {{}}, {{""}}, {{"a"}}, {{"a", ""}}, {{"", "a"}}, {{"a"}, {}}, {{}, {"a"}}, {{"ab"}}, {{"a", "b"}}, {{"a"}, {"b"}},
	} {
		k := NewKey(lists...)
		require.False(t, seen[k], lists)
		seen[k] = true
	}
}

func TestEntriesAreShared(t *testing.T) {
	dir := t.TempDir()
	k := NewKey([]string{"a"})
	want := &Entry{Kind: "ptx", Data: []byte("data"), PTX: "text", Log: "log", Names: map[string]string{"f<int>": "_Z"}}
	require.Empty(t, open(t, dir).Put(k, want))
	other := open(t, dir)
	require.Equal(t, want, get(t, other, k))
	require.Equal(t, want, get(t, other, k))
	s := other.Stats()
	require.Equal(t, Stats{MemoryHits: 1, DiskHits: 1, MemoryEntries: 1, MemoryBytes: s.MemoryBytes, DiskEntries: 1, DiskBytes: s.DiskBytes}, s)
	require.Positive(t, s.DiskBytes)

	for path, mode := range map[string]os.FileMode{filepath.Join(dir, name): 0o700, file(dir, k): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	require.NoError(t, other.Clear())
	require.Zero(t, other.Stats())
	require.NoFileExists(t, file(dir, k))
}

func TestEntryIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	dir := t.TempDir()
	k := NewKey([]string{"a"})
	flushed := 0
	t.Cleanup(func() { flush = (*os.File).Sync })
	flush = func(f *os.File) error {
		flushed++
		require.NoFileExists(t, file(dir, k))
		info, err := f.Stat()
		require.NoError(t, err)
		require.Positive(t, info.Size())
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		return f.Sync()
	}
	require.Empty(t, open(t, dir).Put(k, &Entry{Kind: "ptx"}))
	require.Equal(t, 1, flushed)
	require.FileExists(t, file(dir, k))

	flush = func(*os.File) error { return syscall.EIO }
	other := NewKey([]string{"b"})
	c := open(t, dir)
	c.Put(other, &Entry{Kind: "ptx"})
	require.EqualValues(t, 1, c.Stats().Failed)
	left, err := os.ReadDir(filepath.Join(dir, name))
	require.NoError(t, err)
	require.Len(t, left, 1, "only the first entry")
}

func TestDamageIsFound(t *testing.T) {
	k, other := NewKey([]string{"a"}), NewKey([]string{"b"})
	e := &Entry{Kind: "ptx", Data: bytes.Repeat([]byte("data"), 50)}
	whole, err := encode(k, e)
	require.NoError(t, err)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	foreign, err := encode(other, e)
	require.NoError(t, err)
	for what, data := range map[string][]byte{
		"empty": {}, "cut short": whole[:len(whole)-1], "only a head": whole[:20], "a bit": flipped, "another's": foreign, "longer": append(bytes.Clone(whole), 0),
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir).Put(k, e)
			require.NoError(t, os.WriteFile(file(dir, k), data, 0o600))
			c := open(t, dir)
			found, warning := c.Get(k)
			require.Nil(t, found)
			require.Contains(t, warning, "is not used, and made anew: it is damaged: "+file(dir, k))
			require.NoFileExists(t, file(dir, k))
			require.EqualValues(t, 1, c.Stats().Damaged)
			require.Empty(t, c.Put(k, e))
			require.Equal(t, e, get(t, open(t, dir), k))
		})
	}
}

func TestEntryThatIsNoFile(t *testing.T) {
	k := NewKey([]string{"a"})
	for what, plant := range map[string]func(path string) error{
		"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o700) },
		"link":   func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			c := open(t, dir)
			c.Put(NewKey(), &Entry{}) // makes the folder
			require.NoError(t, plant(file(dir, k)))
			e, warning := c.Get(k)
			require.Nil(t, e)
			require.Contains(t, warning, "is damaged")
			require.Empty(t, c.Put(k, &Entry{Kind: "ptx"}))
			require.Equal(t, "ptx", get(t, open(t, dir), k).Kind)
			require.FileExists(t, "/etc/passwd")
		})
	}
}

// Our own folder, and the one that users choose.
var folders = map[string]func(dir string) string{
	"ours":   func(dir string) string { return filepath.Join(dir, name) },
	"theirs": func(dir string) string { return dir },
}

func TestFolderThatOthersCanChange(t *testing.T) {
	for which, path := range folders {
		t.Run(which, func(t *testing.T) {
			dir := t.TempDir()
			k := NewKey([]string{"a"})
			open(t, dir).Put(k, &Entry{Kind: "ptx"})
			require.NoError(t, os.Chmod(path(dir), 0o777))
			c := open(t, dir)
			e, warning := c.Get(k)
			require.Nil(t, e)
			require.Contains(t, warning, "does not use "+path(dir)+": others can write to it (mode -rwxrwxrwx)")
			require.Contains(t, warning, "CUDAGO_CACHE_DIR")
			e, warning = c.Get(k)
			require.Nil(t, e)
			require.Empty(t, warning, "told once")
			require.Empty(t, c.Put(k, &Entry{Kind: "cubin"}))
			require.Equal(t, "cubin", get(t, c, k).Kind, "memory remains")
			require.EqualValues(t, 1, c.Stats().Failed)
			require.ErrorContains(t, c.Clear(), "others can write to it")
		})
	}
}

func TestNothingIsMadeInAFolderThatOthersCanChange(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Contains(t, open(t, dir).Put(NewKey(), &Entry{Kind: "ptx"}), "others can write to it")
	require.NoDirExists(t, filepath.Join(dir, name))
}

// Processes may have different limits: an entry that is too large for one is sound.
func TestEntryThatIsLargerThanTheLimit(t *testing.T) {
	dir := t.TempDir()
	k := NewKey([]string{"a"})
	e := &Entry{Kind: "ptx", Data: make([]byte, 1000)}
	require.Empty(t, open(t, dir).Put(k, e))
	small := &Cache{}
	small.Configure(Config{Dir: dir, DiskLimit: 100})
	found, warning := small.Get(k)
	require.Nil(t, found)
	require.Empty(t, warning)
	require.Empty(t, small.Put(k, e))
	require.Zero(t, small.Stats().Damaged)
	require.EqualValues(t, 1, small.Stats().Misses)
	require.Equal(t, e, get(t, open(t, dir), k))
}

func TestFolderOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	for which, path := range folders {
		t.Run(which, func(t *testing.T) {
			dir := t.TempDir()
			k := NewKey([]string{"a"})
			open(t, dir).Put(k, &Entry{Kind: "ptx"})
			require.NoError(t, os.Chown(path(dir), 12345, -1))
			e, warning := open(t, dir).Get(k)
			require.Nil(t, e)
			require.Contains(t, warning, "does not use "+path(dir)+": it belongs to user 12345, and this process to 0")
		})
	}
}

func TestFolderThatCannotBeMade(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	c := open(t, filepath.Join(plain, "below"))
	k := NewKey([]string{"a"})
	e, warning := c.Get(k)
	require.Nil(t, e)
	require.Empty(t, warning)
	require.Empty(t, c.Put(k, &Entry{Kind: "ptx"}))
	require.EqualValues(t, 1, c.Stats().Failed)
	get(t, c, k)
}

func TestFolderThatIsAPipe(t *testing.T) {
	for which, path := range folders {
		t.Run(which, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "chosen")
			require.NoError(t, os.MkdirAll(filepath.Dir(path(dir)), 0o700))
			require.NoError(t, syscall.Mkfifo(path(dir), 0o600))
			c := open(t, dir)
			e, warning := c.Get(NewKey())
			require.Nil(t, e)
			require.Empty(t, warning)
			require.Empty(t, c.Put(NewKey(), &Entry{Kind: "ptx"}))
			require.EqualValues(t, 1, c.Stats().Failed)
			require.ErrorIs(t, c.Clear(), syscall.ENOTDIR)
		})
	}
}

func TestOldestEntriesMakeRoom(t *testing.T) {
	dir := t.TempDir()
	one, err := encode(NewKey(), &Entry{Data: make([]byte, 1000)})
	require.NoError(t, err)
	limit := int64(3*len(one) + 500)
	c := &Cache{}
	c.Configure(Config{Dir: dir, DiskLimit: limit})
	keys := make([]Key, 4)
	for i := range keys {
		keys[i] = NewKey([]string{fmt.Sprint(i)})
	}
	at := time.Now().Add(-time.Hour)
	for i, k := range keys[:3] {
		require.Empty(t, c.Put(k, &Entry{Data: make([]byte, 1000)}))
		require.NoError(t, os.Chtimes(file(dir, k), at, at.Add(time.Duration(i)*time.Minute)))
	}
	get(t, c, keys[0]) // the newest now
	foreign := filepath.Join(dir, name, "notes.txt")
	require.NoError(t, os.WriteFile(foreign, make([]byte, 9000), 0o600))
	orphan := file(dir, keys[3]) + ".tmp-ABC"
	require.NoError(t, os.WriteFile(orphan, nil, 0o600))
	require.NoError(t, os.Chtimes(orphan, at, at.Add(-time.Hour)))

	require.Empty(t, c.Put(keys[3], &Entry{Data: make([]byte, 1000)}))
	require.FileExists(t, file(dir, keys[0]))
	require.NoFileExists(t, file(dir, keys[1]))
	require.FileExists(t, file(dir, keys[3]))
	require.FileExists(t, foreign, "not ours")
	require.NoFileExists(t, orphan)
	require.EqualValues(t, 1, c.Stats().Evicted)
	require.LessOrEqual(t, c.Stats().DiskBytes, limit)

	require.Empty(t, c.Put(NewKey(), &Entry{Data: make([]byte, 5000)})) // larger than all
	require.NoFileExists(t, file(dir, NewKey()))
}

func TestMemoryIsLimited(t *testing.T) {
	c := &Cache{}
	c.Configure(Config{MemoryLimit: 3000})
	keys := make([]Key, 3)
	for i := range keys {
		keys[i] = NewKey([]string{fmt.Sprint(i)})
		c.Put(keys[i], &Entry{Data: make([]byte, 500)})
		get(t, c, keys[0])
	}
	e, _ := c.Get(keys[1])
	require.Nil(t, e, "used the longest time ago")
	get(t, c, keys[2])
	require.LessOrEqual(t, c.Stats().MemoryBytes, int64(3000))
	c.Put(keys[0], &Entry{Data: make([]byte, 5000)})
	require.EqualValues(t, 1, c.Stats().MemoryEntries, "too large, and the old one is not what was put")
}

// Writers of one key, and of many, at the same time: readers see all of an entry
// or none.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	want := strings.Repeat("x", 20_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c := &Cache{}
			c.Configure(Config{Dir: dir, DiskLimit: 100_000}) // room for four
			for i := range 25 {
				k := NewKey([]string{fmt.Sprint(i % 7)})
				e, warning := c.Get(k)
				if e != nil && e.PTX != want || warning != "" {
					t.Errorf("damaged: %s", warning)
				}
				c.Put(k, &Entry{PTX: want})
			}
			if s := c.Stats(); s.Failed > 0 || s.Damaged > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
	wg.Wait()
	found, err := os.ReadDir(filepath.Join(dir, name))
	require.NoError(t, err)
	for _, f := range found {
		require.Regexp(t, isEntry, f.Name(), "a temporary file is left")
	}
}
