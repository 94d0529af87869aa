// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"fmt"
	"strings"
)

// SyntaxError says where text stopped being PTX. Line and Column count from 1;
// Column counts bytes.
type SyntaxError struct {
	Line, Column int
	// Text is the line itself, without its end.
	Text string
	Msg  string
}

// Error shows the line and marks the column under it.
func (e *SyntaxError) Error() string {
	text, column := e.Text, e.Column
	// Generated lines can be very long: show the part around the fault.
	const most, before = 160, 60
	if len(text) > most {
		from := max(0, min(column-1-before, len(text)-most))
		text, column = text[from:from+most], column-from
	}
	pad := []byte(text[:min(max(column-1, 0), len(text))])
	for i, c := range pad {
		if c != '\t' {
			pad[i] = ' '
		}
	}
	return fmt.Sprintf("ptx: line %d, column %d: %s\n\t%s\n\t%s^", e.Line, e.Column, e.Msg, text, pad)
}

// ErrorAt returns a SyntaxError at a line and column of the text, for what is
// wrong in well-formed text.
func ErrorAt(text string, line, column int, msg string) *SyntaxError {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	e := newSyntaxError(text, at, "%s", msg)
	e.Column = max(column, 1)
	return e
}

// newSyntaxError finds line and column of the byte offset at in src.
func newSyntaxError(src string, at int, format string, args ...any) *SyntaxError {
	at = min(at, len(src))
	start := strings.LastIndexByte(src[:at], '\n') + 1
	end := len(src)
	if i := strings.IndexByte(src[at:], '\n'); i >= 0 {
		end = at + i
	}
	return &SyntaxError{
		Line:   strings.Count(src[:start], "\n") + 1,
		Column: at - start + 1,
		Text:   strings.TrimSuffix(src[start:end], "\r"),
		Msg:    fmt.Sprintf(format, args...),
	}
}
