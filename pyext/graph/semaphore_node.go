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

//export cudagoGraphSemaphore
func cudagoGraphSemaphore(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, semaphore, value C.uint64_t,
	waits C.int32_t, fromID, fromNode C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		e, err := otherSemaphore(uint64(semaphore), fromID, fromNode)
		if err != nil {
			releaseOperands(o.Operands)
			return nil, err
		}
		o.Again = fromID != 0
		return g.Semaphore(cuda.SemaphoreParams{Semaphore: e, Value: uint64(value), IsWait: waits != 0}, o)
	})
}

//export cudagoUpdateSemaphore
func cudagoUpdateSemaphore(id, node, semaphore, value C.uint64_t, waits C.int32_t, ref *C.cudago_ref, st *C.cudago_status) {
	update(id, node, operands(ref, 1), st, func(n updatable, list []graph.Operand) error {
		e, err := semaphoreOf(n, uint64(semaphore))
		if err != nil {
			releaseOperands(list)
			return err
		}
		return n.UpdateSemaphore(cuda.SemaphoreParams{Semaphore: e, Value: uint64(value), IsWait: waits != 0}, list)
	})
}

// otherSemaphore is the semaphore of a number; or, if a node is given, the one that
// it has.
func otherSemaphore(number uint64, id, node C.uint64_t) (*cuda.ExternalSemaphore, error) {
	if id == 0 {
		return stream.Semaphores.Get(number)
	}
	n, _, err := updatableNode(id, node)
	if err != nil {
		return nil, err
	}
	return semaphoreOf(n, 0)
}

// semaphoreOf is the semaphore of an id; of 0, the one that the node has.
func semaphoreOf(n updatable, id uint64) (*cuda.ExternalSemaphore, error) {
	if p, ok := n.Params().(cuda.SemaphoreParams); ok && id == 0 {
		return p.Semaphore, nil
	}
	return stream.Semaphores.Get(id)
}
