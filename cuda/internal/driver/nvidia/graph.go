// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// nodes is the C array behind s, which has no Go pointers in it.
func nodes(s []driver.CUgraphNode) *C.CUgraphNode {
	return (*C.CUgraphNode)(unsafe.Pointer(unsafe.SliceData(s)))
}

func (d *binding) CuGraphGetNodes(g driver.CUgraph) ([]driver.CUgraphNode, driver.CUresult) {
	var count C.size_t
	r := C.cuGraphGetNodes(d.fn[cuGraphGetNodes], C.CUgraph(g), nil, &count)
	if r != 0 || count == 0 {
		return nil, driver.CUresult(r)
	}
	list := make([]driver.CUgraphNode, count)
	r = C.cuGraphGetNodes(d.fn[cuGraphGetNodes], C.CUgraph(g), nodes(list), &count)
	return list[:written(r, count, len(list))], driver.CUresult(r)
}

// written is how much of an array of size n a call has filled that returned r
// and count.
func written(r C.CUresult, count C.size_t, n int) int {
	if r != 0 {
		return 0
	}
	return min(int(count), n)
}

func (d *binding) CuGraphGetEdges(g driver.CUgraph) (from, to []driver.CUgraphNode, data []driver.CUgraphEdgeData, r driver.CUresult) {
	var count C.size_t
	cr := C.cuGraphGetEdges(d.fn[cuGraphGetEdges], C.CUgraph(g), nil, nil, nil, &count)
	if cr != 0 || count == 0 {
		return nil, nil, nil, driver.CUresult(cr)
	}
	from, to = make([]driver.CUgraphNode, count), make([]driver.CUgraphNode, count)
	data = make([]driver.CUgraphEdgeData, count)
	cr = C.cuGraphGetEdges(d.fn[cuGraphGetEdges], C.CUgraph(g), nodes(from), nodes(to), (*C.CUgraphEdgeData)(unsafe.Pointer(&data[0])), &count)
	n := written(cr, count, len(from))
	return from[:n], to[:n], data[:n], driver.CUresult(cr)
}

func (d *binding) CuGraphNodeGetDependencies(n driver.CUgraphNode) ([]driver.CUgraphNode, driver.CUresult) {
	var count C.size_t
	r := C.cuGraphNodeGetDependencies(d.fn[cuGraphNodeGetDependencies], C.CUgraphNode(n), nil, nil, &count)
	if r != 0 || count == 0 {
		return nil, driver.CUresult(r)
	}
	list := make([]driver.CUgraphNode, count)
	data := make([]C.CUgraphEdgeData, count)
	r = C.cuGraphNodeGetDependencies(d.fn[cuGraphNodeGetDependencies], C.CUgraphNode(n), nodes(list), &data[0], &count)
	return list[:written(r, count, len(list))], driver.CUresult(r)
}

func (d *binding) CuGraphAddNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUgraphNodeParams) (driver.CUgraphNode, []driver.CUgraph, driver.CUresult) {
	var bodies []driver.CUgraph
	if params.Type == driver.CU_GRAPH_NODE_TYPE_CONDITIONAL {
		bodies = make([]driver.CUgraph, params.Conditional.Size)
	}
	o := C.cuGraphAddNode(d.fn[cuGraphAddNode], C.CUgraph(g), nodes(deps), C.size_t(len(deps)),
		*(*C.CUgraphNodeParams)(unsafe.Pointer(params)), (*C.CUgraph)(unsafe.Pointer(unsafe.SliceData(bodies))), C.uint32_t(len(bodies)))
	if o.r != 0 {
		return 0, nil, driver.CUresult(o.r)
	}
	return driver.CUgraphNode(o.value), bodies, driver.CUDA_SUCCESS
}
