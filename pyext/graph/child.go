// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

// cudagoSetChild makes a node of a graph embed another graph.
//
//export cudagoSetChild
func cudagoSetChild(id, node, child C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		sub, err := graphs.Get(uint64(child))
		if err != nil {
			return err
		}
		list, err := g.find(&node, 1)
		if err != nil {
			return err
		}
		n := list[0]
		before := n.Child()
		err = n.UpdateChild(sub.Graph)
		g.outermost().holder.apply()
		if err == nil {
			g.outermost().forgetInner(before)
		}
		return err
	})
}

// cudagoUpdateChild gives what a node of an executable embeds the parameters of a
// graph.
//
//export cudagoUpdateChild
func cudagoUpdateChild(id, node, child C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		x, n, err := execNode(id, node)
		if err != nil {
			return err
		}
		sub, err := graphs.Get(uint64(child))
		if err != nil {
			return err
		}
		err = n.UpdateChild(sub.Graph)
		x.holder.apply()
		return err
	})
}
