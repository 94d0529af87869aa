// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// A file of the last calls has this many lines, each of so many bytes. A line
// that is longer is cut.
const (
	lastCalls = 20
	lineBytes = 256
)

// Last is a file that has the last driver calls of this process, the one that is
// under way included. It is mapped, so that it is whole however the process ends
// and costs no call of the system for each of the driver's. It stays mapped until
// then.
//
// The lines are a ring, so the file is read by their numbers, as by sort.
type Last struct {
	mu   sync.Mutex
	file []byte // guarded by mu
	next int    // guarded by mu: how many calls have begun
}

// OpenLast makes the file, or empties it. It is never cut: another process, such
// as this one's parent, may have it mapped, and would die by its next line.
func OpenLast(name string) (*Last, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if err := f.Truncate(lastCalls * lineBytes); err != nil {
		return nil, err
	}
	// Written, so that the disk has room for it: a write to the mapping that finds
	// none is a SIGBUS.
	if _, err := f.WriteAt(bytes.Repeat(emptyLine(), lastCalls), 0); err != nil {
		return nil, err
	}
	file, err := syscall.Mmap(int(f.Fd()), 0, lastCalls*lineBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Last{file: file}, nil
}

// begin puts a call where the oldest was, and returns its place.
func (l *Last) begin(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	place := l.next
	l.next++
	l.write(place, text+" ...")
	return place
}

// end writes the result of the call at a place, unless the place has been reused.
func (l *Last) end(place int, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if place+lastCalls >= l.next {
		l.write(place, line)
	}
}

// write fills a line; the lock is held.
func (l *Last) write(place int, text string) {
	line := l.file[place%lastCalls*lineBytes:][:lineBytes]
	n := copy(line[:lineBytes-1], fmt.Sprintf("%010d %s", place, text))
	copy(line[n:], emptyLine()[n:])
}

func emptyLine() []byte {
	line := bytes.Repeat([]byte(" "), lineBytes)
	line[lineBytes-1] = '\n'
	return line
}
