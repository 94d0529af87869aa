// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

// Stop is what an instruction panics with; the machine makes a Fault of it.
type Stop struct {
	Kind       fault.Kind
	Warp       *Warp
	In         *Inst // nil: the block's terminator
	Lane       int
	Addr, Size uint64
	Space      ptxir.Space
	Limit      uint64
	Detail     string
}

// Fault stops the kernel.
func (w *Warp) Fault(f *Stop) {
	f.Warp = w
	panic(f)
}
