// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"sync/atomic"

	"github.com/cudago/cudago/internal/ptxvm/check"
)

// task numbers the work of a test.
var task atomic.Uint32

// Watching makes a Watch whose findings go to found. All other work is ordered
// before it, except what is in unordered.
func Watching(found *[]string, unordered ...*check.Watch) *check.Watch {
	v := &check.Watch{
		Checks: check.Races | check.Uninitialized, Task: task.Add(1), Name: "this work",
		Report: func(f *check.Finding) { *found = append(*found, f.Error()) },
	}
	v.Unordered = func(task uint32) *check.Watch {
		for _, o := range unordered {
			if o.Task == task {
				return o
			}
		}
		return nil
	}
	return v
}
