// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

// fmaF32 runs the quick loop until it keeps meeting data of few bits, whose sums
// are often half-way: there its branches are mispredicted, and the loop without
// branches is faster. The instruction's site keeps the score for each worker.
func fmaF32(w *warp, in *inst, m uint32) {
	const enough, bad = 64, 16
	s := w.site(in.site)
	if s.span >= enough {
		s.span--
		fmaFusedF32(w, in, m)
		return
	}
	w.redone = 0
	fmaQuickF32(w, in, m)
	if w.redone > 2 {
		s.span += bad
	} else if s.span > 0 {
		s.span--
	}
}
