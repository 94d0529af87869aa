// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"crypto/sha256"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cudago/cudago/internal/pathname"
)

// Files is what a source includes, and where it was not found: a file that
// appears there would be included instead.
//
// Names are as the compiler makes them: with links and what comes after them.
type Files struct {
	Found   map[string]File
	Missing []string
	// Same has folders that were another by another name. What a file in them
	// includes was looked for by one of the names.
	Same map[string]string
}

// File is what a file was like when it was read.
type File struct {
	Sum  [sha256.Size]byte
	Stat stat
	Read int64 // when, in nanoseconds
}

// stat is what changes when a file does.
type stat struct {
	Size, Modified, Changed int64
	Inode, Device           uint64
}

// settled is for how long a file must have been unchanged for its stat to stand
// for its contents: times of file systems have a granularity, and a write within
// it changes no time.
const settled = int64(2 * time.Second)

func (f *File) isSettled() bool { return max(f.Stat.Modified, f.Stat.Changed) < f.Read-settled }

// statOf returns the stat of a regular file, and false for anything else.
func statOf(path string) (stat, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return stat{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}, false
	}
	return stat{info.Size(), info.ModTime().UnixNano(), s.Ctim.Nano(), s.Ino, s.Dev}, true
}

// Unchanged reports whether the compiler would find the same again.
func (f *Files) Unchanged() bool {
	for folder, other := range f.Same {
		if !isSame(folder, other) {
			return false
		}
	}
	for _, path := range f.Missing {
		if _, exists := statOf(path); exists {
			return false
		}
	}
	for path, file := range f.Found {
		now, exists := statOf(path)
		if !exists {
			return false
		}
		if now == file.Stat && file.isSettled() {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || sha256.Sum256(text) != file.Sum {
			return false
		}
	}
	return true
}

func isSame(folder, other string) bool {
	a, err := os.Stat(folder)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// Source is what a compiler is given that may include files.
type Source struct {
	Texts    []string // the source, headers in memory, and options
	Dirs     []string // where includes are looked for, besides beside the text
	Beside   []string // folders of the texts
	Includes []string // what the options include
	Folder   string   // where those are looked for first
}

// The most that is read of includes; more is not cached.
const (
	mostPaths = 40_000
	mostBytes = 512 << 20
)

// Read finds the files that a source may include, directly or not. isKnown is
// false if that cannot be told.
func (s *Source) Read() (files Files, isKnown bool) {
	w := walk{
		dirs: s.Dirs, files: Files{Found: map[string]File{}, Same: map[string]string{}},
		seen: map[string]bool{}, by: map[place]string{},
	}
	for _, name := range s.Includes {
		w.look(include{name: name, quoted: true}, append([]string{s.Folder}, s.Beside...))
	}
	for _, text := range s.Texts {
		list, known := includes(text)
		if !known {
			return Files{}, false
		}
		for _, i := range list {
			w.look(i, s.Beside)
		}
	}
	for len(w.todo) > 0 && !w.failed {
		path := w.todo[0]
		w.todo = w.todo[1:]
		w.read(path)
	}
	slices.Sort(w.files.Missing)
	return w.files, !w.failed
}

// walk goes from file to included file.
type walk struct {
	dirs   []string
	files  Files
	seen   map[string]bool
	by     map[place]string // the folder by whose name a file's includes were looked for
	todo   []string
	bytes  int64
	failed bool
}

// place is a file in a folder: where two names lead there, what it includes is the
// same. Files that include each other by .. have names without end.
type place struct {
	file, folder identity
}

type identity struct {
	inode, device uint64
}

// look notes every place where the file may be: which of them comes first is the
// compiler's business.
func (w *walk) look(i include, beside []string) {
	if pathname.IsAbsolute(i.name) {
		w.note(i.name)
		return
	}
	for _, dir := range w.dirs {
		w.note(pathname.Join(dir, i.name))
	}
	if i.quoted {
		for _, dir := range beside {
			w.note(pathname.Join(dir, i.name))
		}
	}
}

func (w *walk) note(path string) {
	if w.seen[path] {
		return
	}
	w.seen[path] = true
	if _, exists := statOf(path); exists {
		w.todo = append(w.todo, path)
	} else {
		w.files.Missing = append(w.files.Missing, path)
	}
	w.failed = w.failed || len(w.seen) > mostPaths
}

func (w *walk) read(path string) {
	f, known := readFile(path)
	w.bytes += f.Stat.Size
	if !known || w.bytes > mostBytes {
		w.failed = true
		return
	}
	w.files.Found[path] = f.File
	folder := pathname.Folder(path)
	at, exists := placeOf(f.Stat, folder)
	if !exists {
		w.failed = true
		return
	}
	if by, seen := w.by[at]; seen {
		w.files.Same[folder] = by
		return
	}
	w.by[at] = folder
	for _, i := range f.list {
		w.look(i, []string{folder})
	}
}

func placeOf(file stat, folder string) (at place, exists bool) {
	info, err := os.Stat(folder)
	if err != nil {
		return place{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return place{}, false
	}
	return place{identity{file.Inode, file.Device}, identity{s.Ino, s.Dev}}, true
}

// known are the files that were read already: programs share headers.
var known struct {
	sync.Mutex
	files map[string]readOnce // guarded by the mutex
}

type readOnce struct {
	File
	list []include
}

func readFile(path string) (readOnce, bool) {
	now, exists := statOf(path)
	if !exists {
		return readOnce{}, false
	}
	known.Lock()
	f, found := known.files[path]
	known.Unlock()
	if found && f.Stat == now && f.isSettled() {
		return f, true
	}
	f = readOnce{File: File{Stat: now, Read: time.Now().UnixNano()}}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, false
	}
	var ok bool
	if f.list, ok = includes(string(text)); !ok {
		return f, false
	}
	f.Sum = sha256.Sum256(text)
	known.Lock()
	defer known.Unlock()
	if known.files == nil || len(known.files) > mostPaths {
		known.files = map[string]readOnce{}
	}
	known.files[path] = f
	return f, true
}
