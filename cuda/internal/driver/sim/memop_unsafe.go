// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// memOpWork writes values into memory, and waits for values there, in order.
type memOpWork struct {
	ctx *context
	ops []memOp
}

type memOp struct {
	kind  driver.CUstreamBatchMemOpType
	at    operand
	value uint64
	flags uint32
}

func (o *memOp) isWait() bool {
	return o.kind == driver.CU_STREAM_MEM_OP_WAIT_VALUE_32 || o.kind == driver.CU_STREAM_MEM_OP_WAIT_VALUE_64
}

// newMemOp checks the parameters of one operation. Memory of a peer to which there
// is no access is refused: so two H200 with driver 580 have it in streams, and for
// a node when its graph is launched.
func (d *simulator) newMemOp(c *context, p *driver.CUstreamBatchMemOpParams) (memOp, driver.CUresult) {
	o := memOp{kind: p.Operation, value: p.Value, flags: p.Flags}
	size, most := uint64(4), driver.CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
	switch o.kind {
	case driver.CU_STREAM_MEM_OP_WAIT_VALUE_32, driver.CU_STREAM_MEM_OP_WRITE_VALUE_32:
		o.value &= math.MaxUint32
	case driver.CU_STREAM_MEM_OP_WAIT_VALUE_64, driver.CU_STREAM_MEM_OP_WRITE_VALUE_64:
		size = 8
	default:
		return o, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	if o.isWait() {
		most = driver.CU_STREAM_WAIT_VALUE_NOR
	}
	if o.flags > most || uint64(p.Address)%size != 0 {
		return o, driver.CUDA_ERROR_INVALID_VALUE
	}
	var r driver.CUresult
	o.at, r = d.operand(uint64(p.Address), size)
	if r == driver.CUDA_SUCCESS && (o.at.pageable() || o.at.known != nil && !o.at.known.takesMemOps() || c.dev.memory.Denied(o.at.addr) != "") {
		r = driver.CUDA_ERROR_INVALID_VALUE
	}
	return o, r
}

// takesMemOps reports whether streams write values into the memory. An H200 with
// driver 580 refuses that of pools; a graph there takes it, refuses to be
// launched, and may crash later: here it is refused at once.
func (a *allocation) takesMemOps() bool {
	return a.kind != memManaged && a.pool == nil && a.kind != memGraph
}

func (w *memOpWork) run(x *execution) *failure {
	for i := range w.ops {
		o := &w.ops[i]
		if o.isWait() {
			if f := o.await(x); f != nil {
				return f
			}
			continue
		}
		// Neither is an access that can race: flags are how work is ordered.
		if m := o.at.memory(x); m != nil {
			m.Define(o.at.addr, o.at.size)
		}
		if f := use(x, o.write, &o.at); f != nil {
			return f
		}
	}
	return nil
}

func (o *memOp) write(p [2]unsafe.Pointer) {
	if o.at.size == 4 {
		atomic.StoreUint32((*uint32)(p[0]), uint32(o.value))
	} else {
		atomic.StoreUint64((*uint64)(p[0]), o.value)
	}
}

// holds compares the memory as it is now with the value.
func (o *memOp) holds(x *execution) (yes bool, f *failure) {
	f = use(x, func(p [2]unsafe.Pointer) {
		if o.at.size == 4 {
			v, want := atomic.LoadUint32((*uint32)(p[0])), uint32(o.value)
			yes = compare(o.flags, int32(v-want) >= 0, v == want, v&want != 0, v|want != math.MaxUint32)
		} else {
			v, want := atomic.LoadUint64((*uint64)(p[0])), o.value
			yes = compare(o.flags, int64(v-want) >= 0, v == want, v&want != 0, v|want != math.MaxUint64)
		}
	}, &o.at)
	return yes, f
}

func compare(flags uint32, geq, eq, and, nor bool) bool {
	return [...]bool{geq, eq, and, nor}[flags]
}

// await returns when the comparison holds, the work is canceled, or the context
// has failed.
func (o *memOp) await(x *execution) *failure {
	return x.await(func() (bool, *failure) { return o.holds(x) }, o.String)
}

// String says what a wait waits for.
func (o *memOp) String() string {
	names := [...]string{">=", "==", "&", "nor"}
	return fmt.Sprintf("the %d bytes at %#x to be %s %#x", o.at.size, o.at.addr, names[o.flags], o.value)
}

// mayWait implements [awaiting].
func (w *memOpWork) mayWait() bool {
	return slices.ContainsFunc(w.ops, func(o memOp) bool { return o.isWait() })
}

// ready implements [awaiting].
func (w *memOpWork) ready(x *execution) (bool, *failure) {
	if !w.ops[0].isWait() {
		return true, nil
	}
	return w.ops[0].holds(x)
}

// newMemOpWork checks a batch of operations.
func (d *simulator) newMemOpWork(c *context, list ...driver.CUstreamBatchMemOpParams) (*memOpWork, driver.CUresult) {
	w := &memOpWork{ctx: c}
	for i := range list {
		o, r := d.newMemOp(c, &list[i])
		if r != driver.CUDA_SUCCESS {
			return nil, r
		}
		w.ops = append(w.ops, o)
	}
	return w, driver.CUDA_SUCCESS
}

func (d *simulator) memOp(h driver.CUstream, p driver.CUstreamBatchMemOpParams) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newMemOpWork(s.ctx, p)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.submit(s, w, driver.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
}

func (d *simulator) CuStreamWaitValue32(s driver.CUstream, p driver.CUdeviceptr, value, flags uint32) driver.CUresult {
	return d.memOp(s, driver.CUstreamBatchMemOpParams{
		Operation: driver.CU_STREAM_MEM_OP_WAIT_VALUE_32, Address: p, Value: uint64(value), Flags: flags,
	})
}

func (d *simulator) CuStreamWaitValue64(s driver.CUstream, p driver.CUdeviceptr, value uint64, flags uint32) driver.CUresult {
	return d.memOp(s, driver.CUstreamBatchMemOpParams{
		Operation: driver.CU_STREAM_MEM_OP_WAIT_VALUE_64, Address: p, Value: value, Flags: flags,
	})
}

func (d *simulator) CuStreamWriteValue32(s driver.CUstream, p driver.CUdeviceptr, value, flags uint32) driver.CUresult {
	return d.memOp(s, driver.CUstreamBatchMemOpParams{
		Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_32, Address: p, Value: uint64(value), Flags: flags,
	})
}

func (d *simulator) CuStreamWriteValue64(s driver.CUstream, p driver.CUdeviceptr, value uint64, flags uint32) driver.CUresult {
	return d.memOp(s, driver.CUstreamBatchMemOpParams{
		Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_64, Address: p, Value: value, Flags: flags,
	})
}

// mostMemOps is how many operations a node may have. From the documentation of
// cuStreamBatchMemOp: "The count must be less than 256".
const mostMemOps = 255

// newMemOpNode copies the operations of a node.
func (d *simulator) newMemOpNode(p *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) (*memOpWork, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p == nil || p.Count == 0 || p.Count > mostMemOps || p.ParamArray == nil || p.Flags != 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	c, r := d.contextOf(p.Ctx)
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return d.newMemOpWork(c, unsafe.Slice((*driver.CUstreamBatchMemOpParams)(p.ParamArray), p.Count)...)
}

func (d *simulator) CuGraphAddBatchMemOpNode(g driver.CUgraph, deps []driver.CUgraphNode, p *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	w, r := d.newMemOpNode(p)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, w, r)
}

func (d *simulator) CuGraphBatchMemOpNodeSetParams(h driver.CUgraphNode, p *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) driver.CUresult {
	w, r := d.newMemOpNode(p)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, _, r := workOf[*memOpWork](d, h)
	if r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}

func (d *simulator) CuGraphExecBatchMemOpNodeSetParams(h driver.CUgraphExec, n driver.CUgraphNode, p *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) driver.CUresult {
	w, r := d.newMemOpNode(p)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, w)
}
