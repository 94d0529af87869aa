// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// rowsMeet compares each row with each other one.
func rowsMeet(dst, src, width, pitch, rows uint64) bool {
	for i := range rows {
		for j := range rows {
			d, s := dst+i*pitch, src+j*pitch
			if d < s+width && s < d+width {
				return true
			}
		}
	}
	return false
}

func TestRowsThatOverlap(t *testing.T) {
	const pitch, src = 6, 1000
	for rows := uint64(1); rows <= 4; rows++ {
		for width := uint64(1); width <= pitch; width++ {
			for dst := uint64(src - 40); dst <= src+40; dst++ {
				p := MemcpyParams{Dst: dst, Src: src, Size: width * rows, Box: Box{Rows: rows, Slices: 1, Dst: Pitch{pitch, rows}, Src: Pitch{pitch, rows}}}
				want := dst != src && rowsMeet(dst, src, width, pitch, rows)
				require.Equal(t, want, p.apart() != nil, "%d rows of %d bytes, %d and %d", rows, width, dst, src)
			}
		}
	}
}

func TestRangesThatOverlap(t *testing.T) {
	c := openSimulated(t, Options{})
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	b := allocate(t, mr, 64, s)
	p := b.Ptr()
	require.ErrorContains(t, Memcpy(p, p+8, 16, s), "overlap")
	require.ErrorContains(t, Memcpy(p+8, p, 16, s), "overlap")
	require.NoError(t, Memcpy(p, p, 16, s))
	require.NoError(t, Memcpy(p, p+16, 16, s))
	require.NoError(t, Memcpy(p+16, p, 16, s))
	require.NoError(t, b.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
}
