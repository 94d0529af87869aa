// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package trace is a driver around a driver that writes a line for every driver
// call, after it has returned:
//
//	thread 4711 cuMemAllocFromPoolAsync(size=0x10, pool=0x10, s=0x20) = 0x7f0000000000, CUDA_SUCCESS, 3µs
//
// It can also keep the last calls in a file, to be read after a crash: see
// [OpenLast]. The methods are generated from driver.API; there is one for every
// driver call.
package trace

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// tracer implements driver.API on another driver.
type tracer struct {
	driver.API

	last *Last // nil without

	mu sync.Mutex
	w  io.Writer // guarded by mu; nil without
}

// New returns a driver that does what api does, writes to w and keeps the last
// calls in last. Either may be nil. A line is one Write; what w returns is
// ignored.
func New(api driver.API, w io.Writer, last *Last) driver.API {
	return &tracer{API: api, w: w, last: last}
}

// EntryPoint returns zero, so that callers in C come through here too.
func (d *tracer) EntryPoint(string) uintptr { return 0 }

// Unwrap returns the driver behind.
func (d *tracer) Unwrap() driver.API { return d.API }

// field is an argument of a call, or a value that it returned.
type field struct {
	name  string
	value any
}

// call is a driver call that has begun.
type call struct {
	d     *tracer
	name  string
	in    []field
	began time.Time
	place int // in last
}

// begin notes a call before it is made: the one that a process dies in must be
// among the last.
func (d *tracer) begin(name string, in []field) call {
	c := call{d: d, name: name, in: in}
	if d.last != nil {
		c.place = d.last.begin(c.text())
	}
	c.began = time.Now()
	return c
}

// text is the call without its results. The thread is named because the current
// context and the capture mode belong to it.
func (c call) text() string {
	args := make([]string, len(c.in))
	for i, f := range c.in {
		args[i] = f.name + "=" + format(f.value)
	}
	return fmt.Sprintf("thread %d %s(%s)", syscall.Gettid(), c.name, strings.Join(args, ", "))
}

// end notes what a call returned.
func (c call) end(result driver.CUresult, out []field) {
	took := time.Since(c.began).Round(100 * time.Nanosecond)
	results := make([]string, 0, len(out)+2)
	for _, f := range out {
		results = append(results, format(f.value))
	}
	line := c.text() + " = " + strings.Join(append(results, result.String(), took.String()), ", ")
	if c.d.last != nil {
		c.d.last.end(c.place, line)
	}
	if c.d.w == nil {
		return
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	// A trace that cannot be written is no reason to fail the call.
	_, _ = fmt.Fprintln(c.d.w, line)
}

// format prints handles, addresses and sizes in hexadecimal, bytes as their
// number, and structs with their fields.
func format(v any) string {
	switch v := v.(type) {
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case string:
		return fmt.Sprintf("%q", shorten(v))
	case fmt.Stringer:
		return v.String()
	}
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Uintptr, reflect.Uint64, reflect.UnsafePointer:
		return fmt.Sprintf("%#x", v)
	case reflect.Slice:
		items := make([]string, value.Len())
		for i := range items {
			items[i] = format(value.Index(i).Interface())
		}
		return "[" + strings.Join(items, " ") + "]"
	case reflect.Pointer:
		if value.IsNil() {
			return "nil"
		}
		return fmt.Sprintf("%+v", value.Elem().Interface())
	}
	return fmt.Sprintf("%+v", v)
}

// shorten keeps what fits a line.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
