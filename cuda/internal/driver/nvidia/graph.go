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

func (d *binding) CuGraphCreate(flags uint32) (driver.CUgraph, driver.CUresult) {
	o := C.cuGraphCreate(d.fn[cuGraphCreate], C.uint(flags))
	return driver.CUgraph(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphDestroy(g driver.CUgraph) driver.CUresult {
	return driver.CUresult(C.cuGraphDestroy(d.fn[cuGraphDestroy], C.CUgraph(g)))
}

func (d *binding) CuGraphClone(g driver.CUgraph) (driver.CUgraph, driver.CUresult) {
	o := C.cuGraphClone(d.fn[cuGraphClone], C.CUgraph(g))
	return driver.CUgraph(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphNodeFindInClone(original driver.CUgraphNode, clone driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphNodeFindInClone(d.fn[cuGraphNodeFindInClone], C.CUgraphNode(original), C.CUgraph(clone))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddDependencies(g driver.CUgraph, from, to []driver.CUgraphNode) driver.CUresult {
	if len(from) != len(to) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	return driver.CUresult(C.cuGraphAddDependencies(d.fn[cuGraphAddDependencies],
		C.CUgraph(g), nodes(from), nodes(to), C.size_t(len(from))))
}

func (d *binding) CuGraphRemoveDependencies(g driver.CUgraph, from, to []driver.CUgraphNode) driver.CUresult {
	if len(from) != len(to) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	return driver.CUresult(C.cuGraphRemoveDependencies(d.fn[cuGraphRemoveDependencies],
		C.CUgraph(g), nodes(from), nodes(to), C.size_t(len(from))))
}

func (d *binding) CuGraphDestroyNode(n driver.CUgraphNode) driver.CUresult {
	return driver.CUresult(C.cuGraphDestroyNode(d.fn[cuGraphDestroyNode], C.CUgraphNode(n)))
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

func (d *binding) CuGraphGetEdges(g driver.CUgraph) (from, to []driver.CUgraphNode, r driver.CUresult) {
	var count C.size_t
	cr := C.cuGraphGetEdges(d.fn[cuGraphGetEdges], C.CUgraph(g), nil, nil, nil, &count)
	if cr != 0 || count == 0 {
		return nil, nil, driver.CUresult(cr)
	}
	from, to = make([]driver.CUgraphNode, count), make([]driver.CUgraphNode, count)
	data := make([]C.CUgraphEdgeData, count)
	cr = C.cuGraphGetEdges(d.fn[cuGraphGetEdges], C.CUgraph(g), nodes(from), nodes(to), &data[0], &count)
	n := written(cr, count, len(from))
	return from[:n], to[:n], driver.CUresult(cr)
}

func (d *binding) CuGraphNodeGetType(n driver.CUgraphNode) (driver.CUgraphNodeType, driver.CUresult) {
	o := C.cuGraphNodeGetType(d.fn[cuGraphNodeGetType], C.CUgraphNode(n))
	return driver.CUgraphNodeType(o.value), driver.CUresult(o.r)
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

func (d *binding) CuGraphChildGraphNodeGetGraph(n driver.CUgraphNode) (driver.CUgraph, driver.CUresult) {
	o := C.cuGraphChildGraphNodeGetGraph(d.fn[cuGraphChildGraphNodeGetGraph], C.CUgraphNode(n))
	return driver.CUgraph(o.value), driver.CUresult(o.r)
}
