// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package trace is a driver around a driver that writes a line for every driver
// call, after it has returned:
//
//	thread 4711 cuMemAllocFromPoolAsync(size=0x10, pool=0x10, s=0x20) = 0x7f0000000000, CUDA_SUCCESS, 3µs
//
// The methods are generated from driver.API; there is one for every driver call.
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

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// New returns a driver that does what api does and writes to w. A line is one
// Write; what w returns is ignored.
func New(api driver.API, w io.Writer) driver.API { return &tracer{API: api, w: w} }

// EntryPoint returns zero, so that callers in C come through here too.
func (d *tracer) EntryPoint(string) uintptr { return 0 }

// Unwrap returns the driver behind.
func (d *tracer) Unwrap() driver.API { return d.API }

// field is an argument of a call, or a value that it returned.
type field struct {
	name  string
	value any
}

// log writes one line. The thread is named because the current context and the
// capture mode belong to it.
func (d *tracer) log(began time.Time, call string, result driver.CUresult, in, out []field) {
	took := time.Since(began).Round(100 * time.Nanosecond)
	var args, results []string
	for _, f := range in {
		args = append(args, f.name+"="+format(f.value))
	}
	for _, f := range out {
		results = append(results, format(f.value))
	}
	results = append(results, result.String(), took.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	// A trace that cannot be written is no reason to fail the call.
	_, _ = fmt.Fprintf(d.w, "thread %d %s(%s) = %s\n", syscall.Gettid(), call, strings.Join(args, ", "), strings.Join(results, ", "))
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
