// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// unjoined lists the streams, other than that of c, whose recorded work nothing
// in c's own stream waits for, in words. The driver does not say which they are, and after
// the end nobody can. Streams that only other libraries used are not known.
//
// Preconditions: c.mu is held.
func (c *Capture) unjoined() []string {
	if len(c.others) == 0 {
		return nil
	}
	of, err := c.identify()
	if err != nil || of.graph == 0 {
		return nil
	}
	edges, err := c.stream.Context().GraphEdges(of.graph)
	if err != nil {
		return nil
	}
	before := edges.Completed()
	joined := make(map[cuda.NodeHandle]bool, len(before))
	for todo := dependencies(c.stream); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !joined[n] {
			joined[n] = true
			todo = append(todo, before[n]...)
		}
	}
	var list []string
	for _, s := range c.others {
		for _, n := range dependencies(s) {
			if !joined[n] {
				list = append(list, s.String()+c.lastWork(n))
				break
			}
		}
	}
	return list
}

// lastWork says which line recorded n, or nothing.
func (c *Capture) lastWork(n cuda.NodeHandle) string {
	op := c.recorded[n]
	if op == nil || c.o.Origin == nil {
		return ""
	}
	if line := c.o.Origin(op.site); line != "" {
		return ", whose last work " + line + " made"
	}
	return ""
}

// A streamID tells streams apart: another library's has a new object in each call.
type streamID struct {
	ctx    *cuda.Context
	handle uintptr
}

func streamOf(s *cuda.Stream) streamID { return streamID{s.Context(), s.Handle()} }

// noteStream notes that work was recorded in s.
//
// Preconditions: c.mu is held.
func (c *Capture) noteStream(s *cuda.Stream) {
	of := streamOf(s)
	if of == streamOf(c.stream) {
		return
	}
	c.noteElsewhere(s)
	for i, o := range c.others {
		if streamOf(o) == of {
			c.others[i] = s // the earlier object may be closed by now
			return
		}
	}
	c.others = append(c.others, s)
}

// explainUnjoined adds to an error of a capture's end which streams were not
// joined.
func explainUnjoined(err error, unjoined []string) error {
	var call *cuda.Error
	if len(unjoined) == 0 || !errors.As(err, &call) || !errors.Is(err, cuda.ErrorStreamCaptureUnjoined) {
		return err
	}
	call.Detail = strings.Join(unjoined, ", ") + ": join it, or let the capturing stream wait for it, before the capture ends"
	return err
}
