// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda"
)

// abandoned are waits that were interrupted and continue alone. The driver
// reports a check's finding only once, and may report it to one of these or to a
// wait that the program did not ask for; the finding is then handed to the next
// wait. Errors of other kinds are reported again.
var abandoned = abandonedWaits{n: (*atomic.Int32)(unsafe.Pointer(C.cudago_waits_held_address()))}

type abandonedWaits struct {
	n    *atomic.Int32 // how many there are; if none, a wait looks at nothing else
	mu   sync.Mutex
	list []*wait // guarded by mu
}

func (a *abandonedWaits) add(w *wait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, w)
	a.n.Add(1)
}

// hold makes the next wait raise err if err is a check's finding, and reports
// whether it is.
func (a *abandonedWaits) hold(err error) bool {
	if onlyFinding(err) == nil {
		return false
	}
	w := &wait{end: make(chan error, 1)}
	w.end <- err
	a.add(w)
	return true
}

// HoldFinding makes the next wait raise err if err is a check's finding that was
// reported to a question that the program did not ask, and reports whether it is.
func HoldFinding(err error) bool { return abandoned.hold(err) }

// takeOf takes over the abandoned waits for the same thing as a wait that
// begins: they end no later than it does.
func (a *abandonedWaits) takeOf(kind C.int, id C.uint64_t) (list []*wait) {
	a.remove(func(w *wait) bool {
		same := w.kind == kind && w.id == id
		if same {
			list = append(list, w)
		}
		return same
	})
	return list
}

// finding returns the finding of one that has ended.
func (a *abandonedWaits) finding() (found error) {
	a.remove(func(w *wait) bool {
		if found != nil {
			return false
		}
		select {
		case err := <-w.end:
			found = onlyFinding(err)
			return true
		default:
			return false
		}
	})
	return found
}

func (a *abandonedWaits) remove(which func(w *wait) bool) {
	if a.n.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, which)
	a.n.Store(int32(len(a.list)))
}

// first waits for the waits in list to end and returns the first one's finding,
// or err if it has none. The other findings, and err if it is not returned, are
// held for later waits.
func (a *abandonedWaits) first(list []*wait, err error) (found error) {
	for _, w := range list {
		told := onlyFinding(<-w.end)
		if found == nil {
			found = told
		} else {
			a.hold(told)
		}
	}
	if found == nil {
		return err
	}
	a.hold(err)
	return found
}

func onlyFinding(err error) error {
	if errors.Is(err, cuda.ErrorCheckFailed) {
		return err
	}
	return nil
}
