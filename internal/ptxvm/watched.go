// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/check"
)

// launchWatched runs the kernel's watched form.
func (k *Kernel) launchWatched(l *Launch) error {
	v := l.Watch
	watched, err := k.watchedForm()
	if err != nil {
		return err
	}
	v.Begin(watched.checked, k.module.device.memory, l.Grid, l.Block)
	defer v.Flush()
	return watched.launch(l)
}

// watchedForm decodes the kernel a second time, with checks around its accesses, so
// that the ordinary form does not pay for them.
func (k *Kernel) watchedForm() (*Kernel, error) {
	if k.checked != nil {
		return k, nil
	}
	m := k.module
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.watched[k.ir.Name]; w != nil {
		return w, nil
	}
	w, err := m.decodeKernel(k.ir, true)
	if err != nil {
		return nil, err
	}
	if m.watched == nil {
		m.watched = map[string]*Kernel{}
	}
	m.watched[k.ir.Name] = w
	return w, nil
}

// beginChecks prepares the decoder for a watched form.
func (d *decoder) beginChecks() {
	k := d.kernel
	k.checked = &check.Code{Kernel: k.ir.Name, Files: k.module.ir.Files, DynamicOffset: k.dynamicOffset}
	for v, off := range d.shared {
		k.checked.NameShared(v, off)
	}
	d.checks = check.NewDecoder(&d.Decoder, k.checked)
}

// declareChecked tells the checks about a function and its local variables.
func (d *decoder) declareChecked(f *ptxir.Func) {
	fn := d.funcs[f]
	fn.checked = &check.Function{IR: f, LocalBytes: fn.localBytes}
	for _, list := range [][]*ptxir.Var{f.Params, f.Rets, f.Vars} {
		for _, v := range list {
			if off, ok := d.local[v]; ok {
				fn.checked.NameLocal(v, off)
			}
		}
	}
}
