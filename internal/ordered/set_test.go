// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ordered

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Set is what a plain list would be, and lists of its items stay as they are.
func TestSetIsAList(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			var s Set[int]
			var model []int
			var lists, copies [][]int
			for range 4000 {
				item := r.IntN(20 << seed)
				at := slices.Index(model, item)
				require.Equal(t, at >= 0, s.Has(item))
				switch {
				case at < 0 && r.IntN(10) > int(seed%3):
					s.Add(item)
					model = append(model, item)
				case at < 0:
					require.False(t, s.Remove(item))
				case r.IntN(2) == 0:
					require.True(t, s.Remove(item))
					model = slices.Delete(slices.Clone(model), at, at+1)
				}
				require.Equal(t, len(model), s.Len())
				if r.IntN(20) == 0 {
					require.Equal(t, model, visited(&s))
					lists, copies = append(lists, s.All()), append(copies, slices.Clone(model))
				}
			}
			for i, list := range lists {
				require.Equal(t, copies[i], append([]int(nil), list...))
			}
		})
	}
}

func visited(s *Set[int]) (list []int) {
	for item, next, ok := s.Next(0); ok; item, next, ok = s.Next(next) {
		list = append(list, item)
	}
	return list
}

func TestSetTakesOverAList(t *testing.T) {
	items := []int{3, 1, 2}
	s := Of(items)
	s.Add(7)
	require.True(t, s.Remove(3))
	require.Equal(t, []int{1, 2, 7}, s.All())
	require.Equal(t, []int{3, 1, 2}, items)
	require.Equal(t, len(s.All()), cap(s.All()), "appending to it would write over what is added")
}

// The items are not copied again for each that goes or comes.
func TestSetCopiesLittle(t *testing.T) {
	const count = 1 << 14
	items := make([]int, count)
	for i := range items {
		items[i] = i
	}
	s := Of(items)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range items {
		require.True(t, s.Remove(count-1-i))
		s.Add(count + i)
	}
	for i := range items {
		require.True(t, s.Remove(count+i))
	}
	runtime.ReadMemStats(&after)
	require.Zero(t, s.Len())
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1000*count))
}
