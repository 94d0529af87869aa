// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// executorBench sets up a warp whose register rows hold small numbers.
func executorBench(e *entry) (*Warp, *Inst) {
	c := &CTA{Sites: make([]Site, 1), Shared: make([]byte, 1<<12), SharedBytes: 1 << 12}
	w := &Warp{CTA: c, File: register.At(make([]uint64, 4096), 0)}
	for i := range w.U32(0) {
		for row := range uint32(5) {
			switch {
			case e.key.typ == ptxir.F32 || e.key.from == ptxir.F32:
				w.F32(row * register.Row64)[i] = 1 + float32(i)/float32(7+row)
			case e.key.typ == ptxir.F64 || e.key.from == ptxir.F64:
				w.F64(row * register.Row64)[i] = 1 + float64(i)/float64(7+row)
			default:
				w.U64(row * register.Row64)[i] = uint64(i+1) * 8
			}
		}
	}
	in := &Inst{D: 0, A: register.Row64, B: 2 * register.Row64, C: 3 * register.Row64, Members: 4 * register.Row64, IR: &ptxir.Instr{
		Op: e.key.op, Type: e.key.typ, Space: e.key.space, Round: ptxir.RoundRN,
	}}
	if e.key.op == ptxir.OpSetp {
		in.C = register.None
	}
	return w, in
}

// BenchmarkExecutors times each generated function, for all lanes and for half
// of them: go test -bench 'Executors/addF32'.
func BenchmarkExecutors(b *testing.B) {
	for i := range generated {
		e := &generated[i]
		if (e.key.op == ptxir.OpLd || e.key.op == ptxir.OpSt) && e.key.space != ptxir.SpaceShared {
			continue // wants a device behind it
		}
		name := runtime.FuncForPC(reflect.ValueOf(e.fn).Pointer()).Name()
		name = name[strings.LastIndex(name, ".")+1:]
		for mask, label := range map[uint32]string{register.Full: "full", 0x5555ffff: "part", 1: "one"} {
			b.Run(name+"/"+label, func(b *testing.B) {
				w, in := executorBench(e)
				for b.Loop() {
					e.fn(w, in, mask)
				}
			})
		}
	}
}
