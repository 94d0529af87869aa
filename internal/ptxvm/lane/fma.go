// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

// fmaF32 runs the quick loop until it keeps meeting data of few bits, whose sums
// are often half-way: there its branches are mispredicted, and the loop without
// branches is faster. The instruction's site keeps the score for each worker.
func fmaF32(w *Warp, in *Inst, m uint32) {
	const enough, bad = 64, 16
	s := w.site(in.Site)
	if s.Span >= enough {
		s.Span--
		fmaFusedF32(w, in, m)
		return
	}
	w.redone = 0
	fmaQuickF32(w, in, m)
	if w.redone > 2 {
		s.Span += bad
	} else if s.Span > 0 {
		s.Span--
	}
}
