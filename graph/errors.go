// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"

	"github.com/cudago/cudago/cuda"
)

// A RemovedError says that a node was used after [Graph.Remove]. It matches
// [cuda.ErrClosed].
type RemovedError struct {
	// What is the node, or what was inside it.
	What string
}

// Error returns `memcpy node "upload" was removed from its graph`.
func (e *RemovedError) Error() string { return e.What + " was removed from its graph" }

// Is reports whether target is [cuda.ErrClosed].
func (e *RemovedError) Is(target error) bool { return target == cuda.ErrClosed }

func errEmbedded(verb string) error {
	return &cuda.ArgumentError{
		Kind: cuda.WrongValue, Arg: "graph",
		Text: "is embedded in another and cannot " + verb + ": do it to the graph that was embedded",
	}
}

// inside returns why a graph inside another cannot be used as the verb says, or
// nil.
func (g *Graph) inside(verb string) error {
	switch {
	case g.embedded:
		return errEmbedded(verb)
	case g.owner != nil:
		return &cuda.ArgumentError{
			Kind: cuda.WrongValue, Arg: "graph",
			Text: fmt.Sprintf("is a body of %v and cannot %s: do it to the graph that the node is in", g.owner, verb),
		}
	}
	return nil
}

func badValue(arg, format string, args ...any) error {
	return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: arg, Text: fmt.Sprintf(format, args...)}
}

// errKind is the error for an update with parameters of another kind of node.
func errKind(name string, kind, want cuda.NodeType) error {
	text := fmt.Sprintf("%q is of kind %v and cannot take the parameters of kind %v", name, kind, want)
	if !updatable(kind) {
		text = fmt.Sprintf("%q is of kind %v, whose parameters cannot be updated; those of nodes that allocate, free, join or branch cannot", name, kind)
	}
	return &cuda.ArgumentError{Kind: cuda.WrongType, Arg: "node", Text: text}
}

func updatable(kind cuda.NodeType) bool {
	switch kind {
	case cuda.KernelNode, cuda.MemcpyNode, cuda.MemsetNode, cuda.HostNode:
		return true
	}
	return false
}

// isGone reports whether err says that the device will never run or finish any
// work of the context again, so that no launched work can touch an operand. It
// is false during a reset, which may fail: work would then continue.
func isGone(err error) bool {
	var lost *cuda.LostError
	if errors.As(err, &lost) {
		return !lost.Pending
	}
	var r cuda.Result
	if !errors.As(err, &r) {
		return false
	}
	return r.Sticky() || r == cuda.ErrorContextIsDestroyed || r == cuda.ErrorDeinitialized
}

// isBeingReset reports whether err says that a reset must end before queries
// work.
func isBeingReset(err error) bool {
	var lost *cuda.LostError
	return errors.As(err, &lost) && lost.Pending
}

// isCaptureRefusal reports whether err says that a call has to wait for the end
// of a capture.
func isCaptureRefusal(err error) bool {
	var r cuda.Result
	return errors.As(err, &r) && r >= cuda.ErrorStreamCaptureUnsupported && r <= cuda.ErrorStreamCaptureWrongThread
}
