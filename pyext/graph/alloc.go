// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/memory"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoGraphAlloc
func cudagoGraphAlloc(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, size C.uint64_t, ordinal C.int32_t,
	peers C.uint32_t, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		on, err := border.ContextOf(int(ordinal))
		if err != nil {
			return nil, err
		}
		p := cuda.AllocNodeParams{Size: uint64(size), On: on}
		for i := range on.Device().Driver().DeviceCount() {
			if peers&(1<<i) == 0 {
				continue
			}
			peer, err := on.Device().Driver().Device(i)
			if err != nil {
				return nil, err
			}
			p.Peers = append(p.Peers, peer)
		}
		return g.AllocOn(p, o)
	})
}

//export cudagoGraphFree
func cudagoGraphFree(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, memory C.uint64_t,
	ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		m, err := memories.Get(uint64(memory))
		if err != nil {
			releaseOperands(o.Operands)
			return nil, err
		}
		return g.Free(m, o)
	})
}

// memories hold graphs' memory, one for each allocation that Python has.
var memories = border.NewTable[graph.Memory]("graph memory")

// cudagoGraphMemory describes the memory that an alloc node allocates, and holds
// it.
//
//export cudagoGraphMemory
func cudagoGraphMemory(id, node C.uint64_t, ptr, size *C.uint64_t, ordinal *C.int32_t, peers *C.uint32_t, st *C.cudago_status) (memory C.uint64_t) {
	guard(st, func() error {
		n, err := nodeOf(id, node)
		if err != nil {
			return err
		}
		hold, err := n.Memory()
		if err != nil {
			return err
		}
		p := n.Params().(graph.AllocParams)
		*ptr, *size = C.uint64_t(p.Ptr), C.uint64_t(p.Size)
		*ordinal, *peers = C.int32_t(p.Ordinal), C.uint32_t(p.Peers)
		memory = C.uint64_t(memories.Put(hold))
		return nil
	})
	return memory
}

// cudagoGraphMemoryReleaseAfter leaves the memory to the reaper, after its uses:
// destroying the graph that it held, which may be what it ends with, may wait. It
// needs the GIL, as [memory.AfterUses] does.
//
//export cudagoGraphMemoryReleaseAfter
func cudagoGraphMemoryReleaseAfter(id, _ C.uint64_t, others, positions *C.uint64_t, n C.int) {
	slice := func(p *C.uint64_t) []uint64 { return unsafe.Slice((*uint64)(p), int(n)) }
	hold, ok := memories.Take(uint64(id))
	if !ok {
		return
	}
	memory.AfterUses(0, slice(others), slice(positions), func() {
		border.Reaper.Add(border.Once(func() error {
			hold.Release()
			return nil
		}))
	})
}

//export cudagoGraphMemoryFree
func cudagoGraphMemoryFree(on, memory C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		m, err := memories.Get(uint64(memory))
		if err != nil {
			return err
		}
		s.Context().Driver().Relaxed(func() { err = graph.FreeAsync(m, s) })
		return err
	})
}
