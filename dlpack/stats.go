// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack

// #include "exchange.h"
import "C"

// A Kind says what an owner cell stands for.
type Kind uint32

// The kinds of cells, in the order of enum cudago_cell_kind.
const (
	KindPool     Kind = C.CUDAGO_CELL_POOL     // stream-ordered device memory
	KindDevice   Kind = C.CUDAGO_CELL_DEVICE   // device memory outside a pool
	KindPinned   Kind = C.CUDAGO_CELL_PINNED   // page-locked host memory
	KindManaged  Kind = C.CUDAGO_CELL_MANAGED  // managed memory
	KindHost     Kind = C.CUDAGO_CELL_HOST     // pageable host memory of ours
	KindForeign  Kind = C.CUDAGO_CELL_FOREIGN  // memory of a DLPack producer
	KindPython   Kind = C.CUDAGO_CELL_PYTHON   // memory of a Python object
	KindGraph    Kind = C.CUDAGO_CELL_GRAPH    // device memory that a node of a graph allocates
	KindVariable Kind = C.CUDAGO_CELL_VARIABLE // a variable of loaded code
)

// Live returns how many cells of a kind somebody still holds.
func Live(k Kind) int64 { return int64(C.cudago_cells_live(C.uint32_t(k))) }

// Stats counts exchanges since the process began.
type Stats struct {
	ExportsMade, ExportsReleased  int64
	ImportsTaken, ImportsReleased int64
}

// ReadStats returns the counts. The caller holds Python's lock where there is a
// Python: imports are counted without atomics.
func ReadStats() Stats {
	s := C.cudago_exchange_read_stats()
	sum := Stats{ImportsTaken: int64(s.imports_taken), ImportsReleased: int64(s.imports_released)}
	for _, e := range s.exports[:C.CUDAGO_WAY_INTERFACE] {
		sum.ExportsMade += int64(e.made)
		sum.ExportsReleased += int64(e.released)
	}
	return sum
}

// Pending reports whether cells wait to be released.
func Pending() bool { return C.cudago_cells_pending() != 0 }

// Drain releases the cells whose last count is gone, and returns how many they
// were. The caller holds Python's lock where there is a Python; otherwise one
// goroutine at a time may drain.
func Drain() int { return int(C.cudago_cells_drain()) }
