// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func sharedVirtual(t *testing.T, c *Context) *VirtualMemoryResource {
	t.Helper()
	mr, err := NewVirtualMemoryResource(c.dev, VirtualOptions{Shareable: true})
	require.NoError(t, err)
	require.True(t, mr.IsShareable())
	return mr
}

// descriptors counts the open ones of the process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func TestGrownMemoryIsImportedAsOneRange(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	before, live := descriptors(t), c.drv.Live()
	b, err := sharedVirtual(t, c).Allocate(12, s)
	require.NoError(t, err)
	require.NoError(t, b.Grow(page+4))
	require.NoError(t, b.Grow(3*page+8))
	require.NoError(t, b.Fill(7, 1, s))

	e, err := b.ExportVirtual(0, b.Size())
	require.NoError(t, err)
	require.Len(t, e.Pieces, 3)
	again, err := b.ExportVirtual(0, b.Size())
	require.NoError(t, err)
	require.Equal(t, e, again)
	open := descriptors(t)
	imported, err := c.ImportVirtual(e, s)
	require.NoError(t, err)
	require.Equal(t, open+len(e.Pieces), descriptors(t), "they remain the caller's; the driver has opened them for itself")
	require.Equal(t, b.Size(), imported.Size())
	require.NotEqual(t, b.Ptr(), imported.Ptr())
	require.NoError(t, imported.Fill(9, 1, s))
	got := make([]byte, b.Size())
	require.NoError(t, b.CopyToHost(got, s))
	require.Equal(t, []byte{9, 9, 9}, []byte{got[0], got[page], got[3*page+7]})

	require.NoError(t, b.Grow(5*page))
	require.EqualValues(t, 3*page+8, imported.Size())
	require.ErrorContains(t, imported.Grow(6*page), "it is imported, and only the process that allocated it")
	_, err = imported.ExportVirtual(0, 4)
	require.ErrorContains(t, err, "only the process that allocated it can share it")

	require.NoError(t, b.Fill(5, 1, s))
	require.NoError(t, b.Close())
	require.Equal(t, [3]int{1, 3, 3}, l.held())
	require.NoError(t, imported.CopyToHost(got, s))
	require.Equal(t, []byte{5, 5}, []byte{got[0], got[3*page+7]}, "the memory is there without who allocated it")
	require.NoError(t, imported.Close())
	require.Zero(t, l.held())
	require.Equal(t, live, c.drv.Live())
	require.Equal(t, before, descriptors(t))
}

func TestPartOfGrownMemoryTakesItsPiecesOnly(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b, err := sharedVirtual(t, c).Allocate(page, s)
	require.NoError(t, err)
	for n := range uint64(3) {
		require.NoError(t, b.Grow((n+2)*page))
	}
	slice, err := b.Slice(page+8, 2*page)
	require.NoError(t, err)
	for _, tt := range []struct {
		name                   string
		offset, size, at, want uint64
		pieces                 int
	}{
		{"all", 0, 2 * page, page + 8, 8, 3},
		{"inside one", 4, page - 12, page + 12, 12, 1},
		{"to the end of one", 0, page - 8, page + 8, 8, 1},
		{"from the start of one", page - 8, 8, 2 * page, 0, 1},
		{"across an edge", page - 12, 8, 2*page - 4, page - 4, 2},
	} {
		e, err := slice.ExportVirtual(tt.offset, tt.size)
		require.NoError(t, err, tt.name)
		require.Equal(t, []uint64{tt.want, tt.size}, []uint64{e.Offset, e.Size}, tt.name)
		require.Len(t, e.Pieces, tt.pieces, tt.name)
		imported, err := c.ImportVirtual(e, s)
		require.NoError(t, err, tt.name)
		require.NoError(t, b.Fill(0, 1, s))
		require.NoError(t, imported.Fill(9, 1, s))
		got := make([]byte, 4*page)
		require.NoError(t, b.CopyToHost(got, s))
		first, last := tt.at, tt.at+tt.size-1
		require.Equal(t, []byte{0, 9, 9, 0}, []byte{got[first-1], got[first], got[last], got[last+1]}, tt.name)
		require.NoError(t, imported.Close())
	}
	_, err = slice.ExportVirtual(8, 2*page)
	require.ErrorContains(t, err, "is empty or not inside the buffer")
	_, err = slice.ExportVirtual(8, 0)
	require.ErrorContains(t, err, "is empty or not inside the buffer")
	require.NoError(t, slice.Close())
	require.NoError(t, b.Close())
	require.Zero(t, l.held())
	_, err = b.ExportVirtual(0, 4)
	require.ErrorIs(t, err, ErrClosed)
}

func TestWhatVirtualMemoryIsNotShared(t *testing.T) {
	c := openSimulated(t, Options{})
	s, pool, pooled := sharedBuffer(t, c)
	plain, err := virtualResource(t, c, 0).Allocate(page, s)
	require.NoError(t, err)
	_, err = plain.ExportVirtual(0, page)
	require.ErrorContains(t, err, "was not created for sharing")
	_, err = pooled.ExportVirtual(0, 4)
	require.ErrorContains(t, err, "only memory that a virtual memory resource allocated")

	descriptor, leases, err := pool.Export()
	require.NoError(t, err)
	ofPool, ofLeases := os.NewFile(uintptr(descriptor), ""), os.NewFile(uintptr(leases), "")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := c.drv.Live()
	for _, fd := range []int{descriptor, leases, int(r.Fd()), 1 << 20, -1} {
		_, err := c.ImportVirtual(VirtualExport{Pieces: []VirtualPiece{{fd, page}}, Size: page}, s)
		require.ErrorIs(t, err, ErrorInvalidValue, "%d", fd)
		require.ErrorContains(t, err, "is the file descriptor that of virtual memory?")
	}
	for _, e := range []VirtualExport{
		{},
		{Pieces: []VirtualPiece{{0, page}}},
		{Pieces: []VirtualPiece{{0, page}}, Offset: page, Size: 1},
		{Pieces: []VirtualPiece{{0, page}}, Offset: 1, Size: 1<<64 - 1},
		{Pieces: []VirtualPiece{{0, page}, {0, 0}}, Size: 1},
		{Pieces: []VirtualPiece{{0, page}, {0, 1<<64 - page}}, Size: 1},
	} {
		_, err := c.ImportVirtual(e, s)
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong, "%+v", e)
	}
	_, err = c.ImportVirtual(VirtualExport{}, nil)
	require.ErrorContains(t, err, "stream")
	require.Equal(t, before, c.drv.Live())
	for _, x := range []io.Closer{r, w, ofPool, ofLeases, plain, pooled, pool, s} {
		require.NoError(t, x.Close())
	}
}

// A size that is not that of the descriptor's memory is found out by the driver.
func TestPieceOfAnotherSize(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b, err := sharedVirtual(t, c).Allocate(2*page, s)
	require.NoError(t, err)
	e, err := b.ExportVirtual(0, 2*page)
	require.NoError(t, err)
	e.Pieces[0].Size, e.Size = 3*page, 3*page
	held := l.held()
	_, err = c.ImportVirtual(e, s)
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.Equal(t, held, l.held())
	require.NoError(t, b.Close())
}

// unshared is a driver without descriptors of virtual memory.
type unshared struct{ driver.API }

func (u unshared) CuDeviceGetAttribute(a driver.CUdevice_attribute, d driver.CUdevice) (int32, driver.CUresult) {
	if a == driver.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED {
		return 0, driver.CUDA_SUCCESS
	}
	return u.API.CuDeviceGetAttribute(a, d)
}

func TestDeviceThatSharesNoVirtualMemory(t *testing.T) {
	c := openSimulated(t, Options{})
	c.drv.api = unshared{c.drv.api}
	_, err := NewVirtualMemoryResource(c.dev, VirtualOptions{Shareable: true})
	require.ErrorIs(t, err, ErrorNotSupported)
	require.ErrorContains(t, err, "shares no virtual memory with other processes")
	_, err = NewVirtualMemoryResource(c.dev, VirtualOptions{})
	require.NoError(t, err)
}

func TestFailedSharingLeavesNothing(t *testing.T) {
	c, faults, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	mr := sharedVirtual(t, c)
	b, err := mr.Allocate(page, s)
	require.NoError(t, err)
	require.NoError(t, b.Grow(2*page))
	e, err := b.ExportVirtual(0, 2*page)
	require.NoError(t, err)
	held, live, open := l.held(), c.drv.Live(), descriptors(t)
	for name, operation := range map[string]func() (io.Closer, error){
		"resource": func() (io.Closer, error) {
			return NewVirtualMemoryResource(c.dev, VirtualOptions{Shareable: true})
		},
		"allocate": func() (io.Closer, error) { return mr.Allocate(page, s) },
		"import":   func() (io.Closer, error) { return c.ImportVirtual(e, s) },
	} {
		t.Run(name, func(t *testing.T) {
			failEach(t, faults, operation, func(t *testing.T, call string) {
				c.Drain()
				require.Equal(t, held, l.held(), "after %s failed", call)
				require.Equal(t, live, c.drv.Live(), "after %s failed", call)
				require.Equal(t, open, descriptors(t), "after %s failed", call)
				current, _ := faults.CuCtxGetCurrent()
				require.Zero(t, current)
			})
		})
	}
	faults.Fail("CuMemExportToShareableHandle", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	err = b.Grow(3 * page)
	require.ErrorIs(t, err, ErrorOutOfMemory)
	require.ErrorContains(t, err, "takes a file descriptor")
	require.EqualValues(t, 2*page, b.Size())
	require.Equal(t, held, l.held())
	require.NoError(t, b.Grow(3*page))
	require.NoError(t, b.Close())
}

func TestResetClosesDescriptorsWithTheMemory(t *testing.T) {
	c := openSimulated(t, Options{})
	before := descriptors(t)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	b, err := sharedVirtual(t, c).Allocate(page, s)
	require.NoError(t, err)
	e, err := b.ExportVirtual(0, page)
	require.NoError(t, err)
	imported, err := c.ImportVirtual(e, s)
	require.NoError(t, err)
	require.NoError(t, c.dev.Reset())
	_, err = b.ExportVirtual(0, page)
	require.ErrorIs(t, err, ErrLost)
	for _, x := range []io.Closer{imported, b, s} {
		require.NoError(t, x.Close())
	}
	require.Equal(t, before, descriptors(t))
}
