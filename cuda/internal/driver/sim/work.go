// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/internal/ptxvm"

// work is one piece of device work. The same kinds serve streams and graph
// nodes. Clones and executables share the work of a node, so run must not
// change it.
type work interface {
	// run does the work to its end.
	run(x *execution) *failure
}

// dropper is work that is notified when it is dropped because its context has
// failed.
type dropper interface {
	drop()
}

// execution is the state for running work: one for each stream.
type execution struct {
	sim    *simulator
	ctx    *context     // the stream's
	launch ptxvm.Launch // scratch, so that a launch allocates nothing
	graph  *graphRun    // the graph launch under way, if any
	node   int32        // which of its nodes
	turns  []turnOf     // how often the loops around it had turned
	mark   *mark        // how the work is to be checked; nil without checks

	priority int32 // the stream's, the greatest first
}

// joinWork waits for other points and does nothing.
type joinWork struct{}

func (joinWork) run(*execution) *failure { return nil }
