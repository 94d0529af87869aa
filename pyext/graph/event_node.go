// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
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
