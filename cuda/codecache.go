// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"strings"

	"github.com/cudago/cudago/cuda/internal/codecache"
	"github.com/cudago/cudago/cuda/internal/nvrtc"
	"github.com/cudago/cudago/internal/pathname"
)

// A CodeCache keeps what compilers made, in memory and in a folder that processes
// share, so that a program is compiled once. The zero value keeps nothing.
//
// Code is found again only if everything that the compiler was told is the same:
// source, headers, options, names, the kind and architecture of the code, the
// compiler itself, and all files that the source may include, there or not. A program is
// compiled each time if that cannot be told: it includes what a macro names, has
// __DATE__ or __TIME__, or options make the compiler write files.
//
// Safe for concurrent use, also by several processes.
type CodeCache struct {
	cache codecache.Cache
}

// CodeCacheConfig says what a [CodeCache] keeps. The zero value keeps nothing.
type CodeCacheConfig = codecache.Config

// CodeCacheStats counts what a [CodeCache] did.
type CodeCacheStats = codecache.Stats

// Configure changes what c keeps, and forgets what it has in memory.
func (c *CodeCache) Configure(config CodeCacheConfig) { c.cache.Configure(config) }

// Stats returns the counts. Blocks while the folder is read.
func (c *CodeCache) Stats() CodeCacheStats { return c.cache.Stats() }

// Clear removes all code that c keeps, and zeroes the counts.
func (c *CodeCache) Clear() error { return c.cache.Clear() }

// Compile is [Program.Compile] through the cache. warning is what users should
// know about the cache, in a sentence, or empty.
func (c *CodeCache) Compile(p *Program, dev *Device, target string) (code *ObjectCode, warning string, err error) {
	if err := checkTarget(target); err != nil {
		return nil, "", err
	}
	switch p.kind {
	case PTX:
		code, err = p.asPTX(target)
		return code, "", err
	case NVVM:
		return p.compileIR(c, dev, target)
	}
	job, err := p.prepare(dev, target)
	if err != nil {
		return nil, "", err
	}
	return c.do(job)
}

// work is what a compiler is told. Each is done once.
type work interface {
	// key hashes all that it is told, but for files.
	key() codecache.Key
	// files are those that it may read; false if that cannot be told.
	files() (files codecache.Files, known bool)
	run() (*ObjectCode, error)
}

// do finds what w made, or makes it.
func (c *CodeCache) do(w work) (code *ObjectCode, warning string, err error) {
	if !c.cache.IsOn() {
		code, err = w.run()
		return code, "", err
	}
	key := w.key()
	entry, warning := c.cache.Get(key)
	if entry != nil {
		return codeOf(entry), warning, nil
	}
	files, known := w.files()
	code, err = w.run()
	if err != nil {
		return nil, warning, err
	}
	if !known || !files.Unchanged() {
		c.cache.Uncacheable()
		return code, warning, nil
	}
	more := c.cache.Put(key, &codecache.Entry{
		Kind: code.Kind, Data: code.Data, PTX: code.PTX, Log: code.Log, Names: code.names, Files: files,
	})
	if warning == "" {
		warning = more
	}
	return code, warning, nil
}

func codeOf(e *codecache.Entry) *ObjectCode {
	return &ObjectCode{Kind: e.Kind, Data: e.Data, PTX: e.PTX, Log: e.Log, names: e.Names}
}

// key implements [work]. The current folder is part of it only where it can
// matter: files are looked for there, and debug information names it.
func (j *job) key() codecache.Key {
	in, folder := &j.in, j.folder
	if !j.mayUseFolder() {
		folder = ""
	}
	var headers []string
	for _, h := range in.Headers {
		headers = append(headers, h.Name, h.Source)
	}
	return codecache.NewKey(
		[]string{j.compiler.Identity(), j.kind, in.Name, in.Source, folder},
		in.Options, headers, in.NameExpressions,
	)
}

func (j *job) mayUseFolder() bool {
	for _, h := range j.in.Headers {
		if mayUseFolder(h.Source) {
			return true
		}
	}
	for _, o := range j.in.Options {
		if strings.Contains(o, "incl") || strings.Contains(o, "-G") || strings.Contains(o, "debug") || strings.Contains(o, "line") {
			return true
		}
	}
	return mayUseFolder(j.in.Source)
}

// mayUseFolder reports whether the text may include a file. A backslash may
// divide the word.
func mayUseFolder(text string) bool {
	return strings.Contains(text, "incl") || strings.Contains(text, "embed") || strings.Contains(text, "import") || strings.Contains(text, "\\")
}

// files implements [work].
func (j *job) files() (codecache.Files, bool) {
	source, ok := j.source()
	if !ok {
		return codecache.Files{}, false
	}
	return source.Read()
}

// source is what may include files, and where; false if an option makes the
// compiler read or write others.
func (j *job) source() (s codecache.Source, ok bool) {
	absolute := func(path string) string { return pathname.In(j.folder, path) }
	in := &j.in
	s.Folder = j.folder
	s.Texts = append(s.Texts, in.Source, strings.Join(in.Options, "\n"))
	s.Beside = append(s.Beside, pathname.Folder(absolute(in.Name)))
	for _, h := range in.Headers {
		s.Texts = append(s.Texts, h.Source)
		s.Beside = append(s.Beside, pathname.Folder(absolute(h.Name)))
	}
	for i := range in.Options {
		switch name, value := option(in.Options, i); {
		case name == "include-path" || name == "I":
			s.Dirs = append(s.Dirs, absolute(value))
		case name == "include" || name == "pre-include" || name == "preinclude":
			s.Includes = append(s.Includes, value)
		case strings.HasPrefix(name, "I"):
			s.Dirs = append(s.Dirs, absolute(strings.TrimPrefix(in.Options[i], "-I")))
		case readsOrWrites(name):
			return s, false
		}
	}
	return s, true
}

// option divides --name=value, --name value, or --name before an element that is
// the value.
func option(list []string, i int) (name, value string) {
	text := strings.TrimLeft(list[i], "-")
	if at := strings.IndexAny(text, "= "); at >= 0 {
		return text[:at], strings.TrimSpace(text[at+1:])
	}
	if i+1 < len(list) {
		value = list[i+1]
	}
	return text, value
}

// readsOrWrites reports whether an option is about files besides includes:
// precompiled headers, reports of times.
func readsOrWrites(name string) bool {
	if strings.HasPrefix(name, "D") || strings.HasPrefix(name, "U") {
		return false // a macro
	}
	for _, word := range []string{"pch", "time", "trace", "file", "config", "isystem", "iquote", "idirafter"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// job is a program as NVRTC gets it.
type job struct {
	p        *Program
	compiler nvrtc.Compiler
	in       nvrtc.Input
	kind     string // of the code that it produces
	folder   string // the current one
}
