// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize_test

import (
	"fmt"

	"github.com/cudago/cudago/internal/finalize"
)

// What an owner leaves behind runs once: when it is closed, or at exit.
func ExampleRegistry() {
	r := finalize.NewRegistry(func(err error) { fmt.Println("reported:", err) })
	say := func(text string) func() error {
		return func() error { fmt.Println(text); return nil }
	}
	first := r.Add(say("first"), nil)
	r.Add(say("second"), nil)
	r.Add(say("third"), nil)
	fmt.Println(first.Call(), first.Call(), first.Alive())
	fmt.Println(r.Shutdown(), "at exit")
	// Output:
	// first
	// true false false
	// third
	// second
	// 2 at exit
}
