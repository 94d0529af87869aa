// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"

	"github.com/cudago/cudago/cuda"
)

// Invalidated notes that a call has just failed: the open captures that are
// invalidated by now, and were not before, were by it. It returns what is known to
// have invalidated those that are open, which the driver does not say. An empty
// cause notes nothing. Its driver calls do not fail because of captures.
func Invalidated(cause string) []string {
	var known []string
	for _, c := range captures.list() {
		if !c.isHere() {
			continue
		}
		if status, err := c.stream.IsCapturing(); err != nil || status != cuda.CaptureInvalidated {
			continue
		}
		if cause != "" {
			c.cause.CompareAndSwap(nil, &cause)
		}
		if why := c.cause.Load(); why != nil {
			known = append(known, *why)
		}
	}
	return known
}

// explainInvalidated adds to an error of a capture's end what has invalidated it.
func (c *Capture) explainInvalidated(err error) error {
	var call *cuda.Error
	if !errors.As(err, &call) || call.Result != cuda.ErrorStreamCaptureInvalidated {
		return err
	}
	if why := c.cause.Load(); why != nil {
		call.Detail = "by " + *why
	} else {
		call.Detail = "by none of cudago's calls: by another library, or in a callback"
	}
	return err
}
