// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// ErrClosed is matched by the error of every use of a closed object. That error
// is a [*ClosedError], which names the object.
var ErrClosed = errors.New("object is closed")

// A ClosedError says that an object was used after its Close. It matches
// [ErrClosed].
type ClosedError struct {
	// What is the kind of object, and its name if it has one: "stream",
	// `stream "upload"`.
	What string
}

// Error returns "stream is closed".
func (e *ClosedError) Error() string { return e.What + " is closed" }

// Is reports whether target is [ErrClosed].
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

// ErrLost is matched by the error of every use of an object whose device was
// reset since it was made. Such errors are [*LostError]s, and match [ErrClosed]
// too.
var ErrLost = errors.New("object was lost in a reset of its device")

// A LostError says that an object was used after, or during, a [Device.Reset]
// that ended it.
type LostError struct {
	// What is the kind of object, and its name if it has one.
	What string
	// Device is what was reset.
	Device *Device
	// Pending says that the reset is under way. It may still fail: then the
	// object and the work that uses it are unchanged.
	Pending bool
}

// Error returns "stream is closed: device 0 was reset".
func (e *LostError) Error() string {
	if e.Pending {
		return e.What + " is closed: " + e.Device.String() + " is being reset"
	}
	return e.What + " is closed: " + e.Device.String() + " was reset"
}

// Is reports whether target is [ErrLost] or [ErrClosed].
func (e *LostError) Is(target error) bool { return target == ErrLost || target == ErrClosed }

// Unwrap returns [ErrorContextIsDestroyed], which the driver would return after
// the reset.
func (e *LostError) Unwrap() error {
	if e.Pending {
		return nil
	}
	return ErrorContextIsDestroyed
}

// A Result is the code that a driver call returned. It is an error, and what an
// [*Error] unwraps to, so that errors.Is(err, ErrorOutOfMemory) works. The
// codes are the constants Success and ErrorXxx.
type Result int32

type resultText struct{ name, explanation string }

// Name returns the name that cuda.h gives, such as "CUDA_ERROR_OUT_OF_MEMORY",
// or "CUresult 12345" for a code that this version does not know.
func (r Result) Name() string {
	if t, ok := textOf(r); ok {
		return t.name
	}
	return "CUresult " + strconv.Itoa(int(r))
}

// Explanation says in a few words what r means. It is empty for a code that
// this version does not know.
func (r Result) Explanation() string {
	t, _ := textOf(r)
	return t.explanation
}

func textOf(r Result) (resultText, bool) {
	if r == ErrorCheckFailed {
		return checkFailedText, true
	}
	t, ok := resultTexts[r]
	return t, ok
}

// Error returns "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
func (r Result) Error() string {
	if text := r.Explanation(); text != "" {
		return r.Name() + ": " + text
	}
	return r.Name()
}

// Sticky reports whether r says that a context is broken for good: every later
// call that uses it fails too, until the device is reset or the process ends.
// Such an error may come from work that was enqueued long before the call that
// returned it.
func (r Result) Sticky() bool {
	switch r {
	case ErrorECCUncorrectable, ErrorNVLinkUncorrectable, ErrorContained,
		ErrorIllegalAddress, ErrorLaunchTimeout, ErrorAssert,
		ErrorHardwareStackError, ErrorIllegalInstruction, ErrorMisalignedAddress,
		ErrorInvalidAddressSpace, ErrorInvalidPC, ErrorLaunchFailed,
		ErrorTensorMemoryLeak, ErrorMPSClientTerminated, ErrorExternalDevice:
		return true
	}
	return false
}

// persists reports whether a call that failed with r would fail again: the
// device has failed for good, or the context or handle no longer exists.
func (r Result) persists() bool {
	switch r {
	case ErrorContextIsDestroyed, ErrorDeinitialized, ErrorNotInitialized, ErrorInvalidContext, ErrorInvalidHandle:
		return true
	}
	return r.Sticky()
}

// Persists reports whether a driver call that failed with r, the number of a
// [Result], would fail again.
func Persists(r int32) bool { return Result(r).persists() }

// Results returns every result code that this version knows, with its name.
func Results() map[Result]string {
	m := make(map[Result]string, len(resultTexts))
	for r, t := range resultTexts {
		m[r] = t.name
	}
	return m
}

// An Error is a driver call that failed.
type Error struct {
	// Op is the driver call, such as "cuMemAllocAsync".
	Op string
	// Result is the code that it returned.
	Result Result
	// Detail holds numbers, names and other facts from the driver. It may be
	// empty.
	Detail string
	// Requested is the size in bytes that an allocation asked for, else zero.
	Requested uint64
}

// Error returns, for example,
//
//	cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY: out of memory (1073741824 bytes on device 0)
func (e *Error) Error() string {
	s := e.Op + ": " + e.Result.Error()
	if e.Result == ErrorCheckFailed {
		return s + ":\n" + e.Detail // a line for each finding
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// Unwrap returns e.Result.
func (e *Error) Unwrap() error { return e.Result }

// An ArgumentKind says what is wrong with an argument.
type ArgumentKind int

// Kinds of [ArgumentError]. The Python face raises TypeError, ValueError and
// OverflowError.
const (
	WrongType  ArgumentKind = iota // of a type that is not accepted
	WrongValue                     // of the right type, but outside what is accepted
	Overflow                       // a number that its type cannot hold
)

// An ArgumentError is a mistake in the arguments of a call, found before the
// driver was called.
type ArgumentError struct {
	Kind ArgumentKind
	// Arg is the argument's name, or "parameter 3 (n)" for a kernel's.
	Arg string
	// Text says what was expected and what was given.
	Text string
}

// Error returns the argument's name and what is wrong with it.
func (e *ArgumentError) Error() string {
	if e.Arg == "" {
		return e.Text
	}
	return e.Arg + " " + e.Text
}

func badType(arg, format string, args ...any) error {
	return &ArgumentError{WrongType, arg, fmt.Sprintf(format, args...)}
}

func badValue(arg, format string, args ...any) error {
	return &ArgumentError{WrongValue, arg, fmt.Sprintf(format, args...)}
}

func overflow(arg, format string, args ...any) error {
	return &ArgumentError{Overflow, arg, fmt.Sprintf(format, args...)}
}

// A CompileError reports source that did not compile, or code that did not link.
type CompileError struct {
	// Name is the program's name, as it stands in the log.
	Name string
	// Log is everything the compiler wrote.
	Log string
	// Options are the options that the compiler was given.
	Options []string
	// Link says that code was linked.
	Link bool
	// Op is the compiler's or linker's call that failed, such as
	// "nvrtcCompileProgram", Code what it returned, and CodeName that code's name in
	// its header. Without such a call they are empty.
	Op       string
	Code     int32
	CodeName string
	// Err is why there was no compilation at all, such as a compiler that was
	// not found; else nil.
	Err error
}

// Error returns the first error line of the log, or e.Err. The whole log is in
// e.Log.
func (e *CompileError) Error() string {
	what := "compilation of " + e.Name
	if e.Link {
		what = "linking " + e.Name
	}
	if e.Err != nil {
		return what + " failed: " + e.Err.Error()
	}
	return what + " failed: " + firstErrorLine(e.Log)
}

// Unwrap returns e.Err.
func (e *CompileError) Unwrap() error { return e.Err }

// firstErrorLine returns the line of a compiler's log that a reader wants to
// see first.
func firstErrorLine(log string) string {
	first := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "error") {
			return line
		}
		if first == "" {
			first = line
		}
	}
	if first == "" {
		return "the compiler said nothing"
	}
	return first
}

// A PTXError reports PTX that the driver refused to load.
type PTXError struct {
	// Op and Result are the driver call and its code.
	Op     string
	Result Result
	// Line and Column are the position in the text, counted from 1, or zero if
	// the driver did not report it.
	Line, Column int
	// Message is the first complaint, Log all that the driver wrote, and Source
	// the line of PTX that it is about, of a long one the part around Column; any of
	// them may be empty.
	Message, Log, Source string
	// mark is a caret, as far from the left as Column is in Source; empty without a column.
	mark string
}

// Error returns the place, the complaint and the line of PTX, with a caret under the column.
func (e *PTXError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op + ": " + e.Result.Name() + ": ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d", e.Line)
		if e.Column > 0 {
			fmt.Fprintf(&b, ", column %d", e.Column)
		}
		b.WriteString(": ")
	}
	if e.Message != "" {
		b.WriteString(e.Message)
	} else {
		b.WriteString(e.Result.Explanation())
	}
	if e.Source != "" {
		b.WriteString("\n    " + e.Source)
		if e.mark != "" {
			b.WriteString("\n    " + e.mark)
		}
	}
	return b.String()
}

// Unwrap returns e.Result.
func (e *PTXError) Unwrap() error { return e.Result }

// A DriverNotFoundError says that no CUDA driver could be opened.
type DriverNotFoundError struct {
	// Tried are the library names that were tried.
	Tried []string
	// Reason is the system loader's message, or why the driver that it found is
	// unusable.
	Reason string
}

// Error says what was tried, why it failed, and how to do without.
func (e *DriverNotFoundError) Error() string {
	s := "no usable CUDA driver"
	if len(e.Tried) > 0 {
		s += " (tried " + strings.Join(e.Tried, ", ") + ")"
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s + `; to run without a GPU choose the simulated driver with CUDAGO_DRIVER=sim or driver="sim"`
}

// check turns the result of the driver call op into an error that has no
// context to ask for details.
func check(op string, r driver.CUresult) error {
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	return &Error{Op: op, Result: Result(r)}
}

// check turns the result of the driver call op into an error.
func (c *Context) check(op string, r driver.CUresult) error {
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	return c.fail(op, r, "")
}

// explained adds to an error of a driver call what the call was about, if it says
// nothing of it yet.
func explained(err error, format string, args ...any) error {
	var e *Error
	if err != nil && errors.As(err, &e) && e.Detail == "" {
		e.Detail = fmt.Sprintf(format, args...)
	}
	return err
}

// waited is check for a call that waits. The driver tells a check's finding to
// one of the calls that fail with it: for the others the wait was all.
func (c *Context) waited(op string, r driver.CUresult) error {
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	e := c.fail(op, r, "")
	if e.Result == ErrorCheckFailed && e.Detail == "" {
		return nil
	}
	return e
}

// fail returns the error for a driver call that failed. A sticky result may
// come from earlier work, so the driver is asked for details of the fault.
func (c *Context) fail(op string, r driver.CUresult, detail string) *Error {
	e := &Error{Op: op, Result: Result(r), Detail: detail}
	if !e.Result.Sticky() && e.Result != ErrorCheckFailed {
		return e
	}
	if report := c.drv.api.FaultReport(c.h); report != "" {
		if e.Detail != "" {
			e.Detail += "; "
		}
		e.Detail += ReadableText(report)
	}
	return e
}

// failAlloc is fail for an allocation of size bytes on c's device.
func (c *Context) failAlloc(op string, r driver.CUresult, size uint64) error {
	return c.failAllocOf(DeviceMemory, op, r, size, "")
}

// failAllocOf is failAlloc of memory of any kind. Why follows the size.
func (c *Context) failAllocOf(kind MemoryKind, op string, r driver.CUresult, size uint64, why string) error {
	where := fmt.Sprintf("on device %d", c.dev.ordinal)
	switch kind {
	case PinnedMemory:
		where = "of pinned host memory"
	case UnifiedMemory:
		where = "of managed memory"
	}
	e := c.fail(op, r, fmt.Sprintf("%d bytes %s%s", size, where, why))
	e.Requested = size
	return e
}
