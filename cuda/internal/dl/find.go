// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dl

import (
	"os"
	"slices"
	"strings"

	"github.com/cudago/cudago/internal/pathname"
)

// Wanted is a library to be found.
type Wanted struct {
	What     string   // what it is and does, for the error
	Names    []string // of the files that are known to work, newest first
	Variable string   // the environment variable with folders to look in first, separated as in PATH
	Folders  []string // of a toolkit, where it is there
	Extra    string   // of cudago, that brings it along
	// ByFolder has the error tell of a folder without the library in one line, not
	// in one for each name.
	ByFolder bool
}

// Attempt is one place where a library was looked for in vain.
type Attempt struct {
	Place string // folder or file
	Why   string
}

// NotFoundError says that no library of a kind could be opened.
type NotFoundError struct {
	What   string
	Advice string
	Tried  []Attempt
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString(e.What + " was not found; " + e.Advice + "; looked in")
	for _, a := range e.Tried {
		b.WriteString("\n  " + a.Place + ": " + a.Why)
	}
	return b.String()
}

// Find opens libraries until bind takes one: in the folders of the variable, in
// s.Paths, by the loader's own search, then in the toolkits that CUDA_HOME and
// CUDA_PATH name and in /usr/local/cuda. bind is given the name of Wanted.Names, and
// the file; it says why it does not take a library.
//
// Errors: [*NotFoundError].
func Find[T any](w Wanted, s Search, bind func(l Library, name, file string) (found *T, why string)) (*T, error) {
	missing := &NotFoundError{What: w.What, Advice: s.Advice(w.Extra, w.Variable)}
	for _, dir := range slices.Concat(s.First(w.Variable), []string{""}, InToolkits(w.Folders...)) {
		absent := 0
		for _, name := range w.Names {
			file := name // for the loader's own search
			if dir != "" {
				file = pathname.Join(dir, name)
				if _, err := os.Stat(file); err != nil {
					if absent++; !w.ByFolder {
						missing.add(file, "no such file")
					}
					continue
				}
			}
			l, why := Open(file)
			if !l.IsOpen() {
				missing.add(file, why)
				continue
			}
			found, why := bind(l, name, file)
			if found != nil {
				return found, nil
			}
			missing.add(file, why)
		}
		if w.ByFolder && absent == len(w.Names) {
			missing.add(dir, w.lacks(dir))
		}
	}
	return nil, missing
}

func (e *NotFoundError) add(place, why string) { e.Tried = append(e.Tried, Attempt{place, why}) }

func (w Wanted) lacks(dir string) string {
	if _, err := os.Stat(dir); err != nil {
		return "no such directory"
	}
	return "has none of " + strings.Join(w.Names, ", ")
}
