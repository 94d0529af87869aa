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
	text, mark := Excerpt(e.Text, min(max(e.Column, 1), len(e.Text)+1))
	return fmt.Sprintf("ptx: line %d, column %d: %s\n\t%s\n\t%s", e.Line, e.Column, e.Msg, text, mark)
}

// Excerpt returns what a message shows of a line around a column, which counts
// bytes from 1, and what stands under it to mark the column: a caret, or nothing
// if there is no such column. Generated lines can have megabytes.
func Excerpt(line string, column int) (text, mark string) {
	const most, before = 160, 60
	marked := 1 <= column && column <= len(line)+1
	at := 0
	if marked {
		at = column - 1
	}
	head, tail := line[:at], line[at:]
	if len(line) > most {
		from := max(0, min(at-before, len(line)-most))
		// A cut may divide a character.
		head, tail = strings.ToValidUTF8(line[from:at], ""), strings.ToValidUTF8(line[at:from+most], "")
	}
	if !marked {
		return tail, ""
	}
	blank := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r // as wide as in the line above
		}
		return ' '
	}, head)
	return head + tail, blank + "^"
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
		Msg:    short(fmt.Sprintf(format, args...)),
	}
}

// short cuts a message that repeats what somebody wrote: a name, too, can have
// megabytes.
func short(msg string) string {
	const most = 1 << 10
	if len(msg) <= most {
		return msg
	}
	return strings.ToValidUTF8(msg[:most], "") + "..."
}
