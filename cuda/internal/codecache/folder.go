// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/cudago/cudago/internal/pathname"
)

// folder is the part of a cache that is on disk.
type folder struct {
	path  string
	limit int64
}

// name is that of our folder in the one that users choose: nothing else there is
// ours to count or to remove.
const name = "compiled"

var (
	isEntry     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	isTemporary = regexp.MustCompile(`^[0-9a-f]{64}\.tmp-`)
)

// orphaned is the age at which a temporary file has no writer any more.
const orphaned = time.Hour

// unsafeError says why a folder is not used.
type unsafeError struct{ path, why string }

func (e *unsafeError) Error() string {
	return fmt.Sprintf("the compile cache does not use %s: %s; CUDAGO_CACHE_DIR names another folder, CUDAGO_CACHE=memory none", e.path, e.why)
}

// open opens our folder, in the one that users choose. What is checked are the
// folders that were opened, which nobody can exchange for others.
func (f *folder) open(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return nil, err
		}
	}
	if err := isFolder(os.Stat, f.path); err != nil {
		return nil, err
	}
	outer, err := os.OpenRoot(f.path)
	if err == nil {
		outer, err = checked(outer, f.path)
	}
	if err != nil {
		return nil, err
	}
	defer closing(outer)
	if create {
		if err := outer.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	if err := isFolder(outer.Stat, name); err != nil {
		return nil, err
	}
	root, err := outer.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return checked(root, pathname.Join(f.path, name))
}

// isFolder returns an error if there is something else: to open a pipe waits for
// its writer.
func isFolder(stat func(string) (fs.FileInfo, error), path string) error {
	info, err := stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return err
}

// checked returns the folder at a path if it is safe, and else closes it.
func checked(root *os.Root, path string) (*os.Root, error) {
	info, err := root.Stat(".")
	if err == nil {
		err = safe(path, info)
	}
	if err != nil {
		_ = root.Close() // the error that matters is the other one
		return nil, err
	}
	return root, nil
}

// closing closes a folder that was only read or renamed in: nothing can be lost.
func closing(root *os.Root) { _ = root.Close() }

func safe(path string, info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return &unsafeError{path, "its owner is not known"}
	case int(s.Uid) != os.Geteuid():
		return &unsafeError{path, fmt.Sprintf("it belongs to user %d, and this process to %d", s.Uid, os.Geteuid())}
	case info.Mode().Perm()&0o022 != 0:
		return &unsafeError{path, fmt.Sprintf("others can write to it (mode %v); chmod go-w would do", info.Mode().Perm())}
	}
	return nil
}

// read returns an entry, or fs.ErrNotExist, or errDamaged after removing it. An
// entry that is larger than all may be is one of a process with another limit.
func (f *folder) read(k Key) (*Entry, error) {
	root, err := f.open(false)
	if err != nil {
		return nil, err
	}
	defer closing(root)
	info, err := root.Lstat(k.String())
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, f.remove(root, k)
	}
	if info.Size() > f.limit {
		return nil, fs.ErrNotExist
	}
	data, err := root.ReadFile(k.String())
	if err != nil {
		return nil, err
	}
	e, err := decode(k, data)
	if err != nil {
		return nil, f.remove(root, k)
	}
	now := time.Now()
	_ = root.Chtimes(k.String(), now, now) // the newest are kept longest; if this fails, not this one
	return e, nil
}

func (f *folder) remove(root *os.Root, k Key) error {
	_ = root.RemoveAll(k.String()) // else the new entry replaces it, or cannot
	return fmt.Errorf("an entry of the compile cache is not used, and made anew: %w: %s", errDamaged, pathname.Join(pathname.Join(f.path, name), k.String()))
}

// write adds an entry, and removes the oldest if there is too much. It returns
// how many it removed.
func (f *folder) write(k Key, e *Entry) (removed int, err error) {
	data, err := encode(k, e)
	if err != nil || int64(len(data)) > f.limit {
		return 0, err
	}
	root, err := f.open(true)
	if err != nil {
		return 0, err
	}
	defer closing(root)
	temporary := k.String() + ".tmp-" + rand.Text()
	err = writeFile(root, temporary, data)
	if err == nil {
		err = root.Rename(temporary, k.String())
	}
	if err != nil {
		_ = root.Remove(temporary) // may not be there
		return 0, err
	}
	return f.trim(root, f.limit)
}

// flush puts what was written on the disk. Tests look at what there is before.
var flush = (*os.File).Sync

// writeFile makes a file that a crash of the machine does not empty once it is
// renamed.
func writeFile(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = flush(f)
	}
	return cmp.Or(err, f.Close())
}

// trim removes the oldest entries until at most most bytes remain.
func (f *folder) trim(root *os.Root, most int64) (removed int, err error) {
	entries, total, err := entriesOf(root)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range entries {
		if total <= most {
			break
		}
		total -= info.Size()
		if root.Remove(info.Name()) == nil { // another process may have done it
			removed++
		}
	}
	return removed, nil
}

// entriesOf returns the entries, and removes what writers that are gone have left.
func entriesOf(root *os.Root) (entries []fs.FileInfo, total int64, err error) {
	all, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, 0, err
	}
	for _, d := range all {
		info, err := d.Info()
		switch {
		case err != nil: // removed meanwhile
		case isEntry.MatchString(d.Name()):
			entries = append(entries, info)
			total += info.Size()
		case isTemporary.MatchString(d.Name()) && time.Since(info.ModTime()) > orphaned:
			_ = root.Remove(d.Name()) // another process may have done it
		}
	}
	return entries, total, nil
}

// count returns the number of entries and their size.
func (f *folder) count() (entries int, total int64) {
	root, err := f.open(false)
	if err != nil {
		return 0, 0
	}
	defer closing(root)
	all, total, _ := entriesOf(root)
	return len(all), total
}

// clear removes all entries.
func (f *folder) clear() error {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closing(root)
	_, err = f.trim(root, -1)
	return err
}
