// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoUpdateEvent
func cudagoUpdateEvent(id, node, event C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) {
	update(id, node, operands(ref, 1), st, func(n updatable, list []graph.Operand) error {
		e, err := stream.Events.Get(uint64(event))
		if err != nil {
			releaseOperands(list)
			return err
		}
		return n.UpdateEvent(e, list)
	})
}

// eventOf is the event of a number; or, if a node is given, the one that it has.
func eventOf(number uint64, id, node C.uint64_t) (*cuda.Event, error) {
	if id == 0 {
		return stream.Events.Get(number)
	}
	n, _, err := updatableNode(id, node)
	if err != nil {
		return nil, err
	}
	if e := n.Event(); e != nil {
		return e, nil
	}
	return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "node", Text: "has no event"}
}
