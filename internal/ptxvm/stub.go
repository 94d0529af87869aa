package ptxvm

import (
	"errors"

	"github.com/cudago/cudago/internal/ptxir"
)

type context struct{}

func (m *Module) allocateVars() error { return nil }
func (m *Module) decodeKernel(ir *ptxir.Kernel) (*Kernel, error) {
	return &Kernel{module: m, ir: ir}, nil
}

// Attributes returns the kernel's attributes.
func (k *Kernel) Attributes() KernelAttributes { return KernelAttributes{} }
func (k *Kernel) launch(l *Launch) error       { return errors.New("not yet") }
