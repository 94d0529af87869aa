// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// A pool that other processes may import has its memory in a file, whose
// descriptor is the shareable handle. The file begins with a page that says what
// it is. Each allocation is a page with its state and then its bytes. Places in
// the file are never used twice; what was freed is given back to the system.
const (
	sharedMagic = 0x6f676164756373 // "scudago"
	sharedPage  = 4096
	sharedLive  = 0x6c697665 // "live"
)

// sharedPool is the file of a pool.
type sharedPool struct {
	file     *heldFile // by the pool and each of its allocations
	id       uint64    // random, in the file's first page
	kind     memoryKind
	imported bool // from another process, which allocates
	exported atomic.Bool

	mu   sync.Mutex
	next int64 // guarded by mu; where the next allocation goes
}

// place is where an allocation is in its pool's file.
type place struct {
	pool   *sharedPool
	offset int64    // of the page with its state
	use    *fileUse // of the pool's file; nil in what only asks where an allocation is
}

func newSharedPool(dev *device, kind memoryKind) (*sharedPool, error) {
	f, err := memfd.Create("cudago simulated memory pool")
	if err != nil {
		return nil, err
	}
	p := &sharedPool{file: holdFile(f), id: rand.Uint64(), kind: kind, next: sharedPage}
	if err := p.write(0, sharedMagic, p.id, uint64(dev.ordinal), uint64(kind)); err != nil {
		p.file.letGo()
		return nil, err
	}
	return p, nil
}

// openSharedPool opens the file behind a descriptor, if it is that of a pool on one
// of so many devices.
func openSharedPool(fd int32, devices int) (p *sharedPool, ordinal uint64, r driver.CUresult) {
	f, err := memfd.Open(os.Getpid(), int(fd))
	if err != nil {
		return nil, 0, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
	}
	p = &sharedPool{file: holdFile(f), imported: true}
	var head [4]uint64
	isPool := p.read(0, head[:]) && head[0] == sharedMagic && head[2] < uint64(devices)
	if !isPool || head[3] != uint64(memPool) && head[3] != uint64(memPinned) {
		p.file.letGo()
		return nil, 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	p.id, p.kind = head[1], memoryKind(head[3])
	return p, head[2], driver.CUDA_SUCCESS
}

func (p *sharedPool) write(at int64, words ...uint64) error {
	bytes, err := binary.Append(nil, binary.LittleEndian, words)
	if err == nil {
		_, err = p.file.WriteAt(bytes, at)
	}
	return err
}

func (p *sharedPool) read(at int64, words []uint64) bool {
	return binary.Read(io.NewSectionReader(p.file, at, int64(8*len(words))), binary.LittleEndian, words) == nil
}

// take makes room for an allocation.
func (p *sharedPool) take(size uint64) (*place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next
	end := at + sharedPage + int64((size+sharedPage-1)/sharedPage*sharedPage)
	use := p.file.use()
	if use == nil {
		return nil, os.ErrClosed
	}
	err := memfd.Grow(p.file.File, end)
	if err == nil {
		p.next = end
		err = p.write(at, sharedLive, size)
	}
	if err != nil {
		use.end()
		return nil, err
	}
	return &place{p, at, use}, nil
}

// is reports whether both are the same memory of the same process.
func (l *place) is(o *place) bool { return l.pool.id == o.pool.id && l.offset == o.offset }

// memory is the place as the VM maps it.
func (l *place) memory() memory.File {
	return memory.File{FD: l.pool.file.Fd(), Offset: l.offset + sharedPage, Theirs: l.pool.imported}
}

// mapHost maps the place where the host sees it.
func (l *place) mapHost(size uint64) ([]byte, driver.CUresult) {
	if l.pool.imported && size > hostBytes() { // a file in memory has any size that somebody gave it
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	mem, err := memfd.Map(l.pool.file.Fd(), l.offset+sharedPage, size)
	return mem, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
}

// hostBytes is how much memory the host has.
func hostBytes() uint64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return math.MaxUint64
	}
	return info.Totalram * uint64(info.Unit)
}

// end ends the use of the place. Memory of this process is then free: whoever still
// maps it reads zeros.
func (l *place) end(size uint64) {
	defer l.use.end()
	if l.pool.imported || l.use.over.Load() {
		return
	}
	_ = l.pool.write(l.offset, 0) // if that fails, what was imported is zeros
	memfd.Free(l.pool.file.Fd(), l.offset+sharedPage, (size+sharedPage-1)/sharedPage*sharedPage)
}

// CuMemPoolExportToShareableHandle returns a descriptor of the pool's file.
func (d *simulator) CuMemPoolExportToShareableHandle(h driver.CUmemoryPool, typ driver.CUmemAllocationHandleType, flags uint64) (int32, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return -1, r
	}
	p := d.pools.get(h)
	if p == nil || p.shared == nil || p.shared.imported || flags != 0 || typ != driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
		return -1, driver.CUDA_ERROR_INVALID_VALUE
	}
	fd, err := memfd.Duplicate(p.shared.file.File)
	if err != nil {
		return -1, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
	}
	p.shared.exported.Store(true)
	return int32(fd), driver.CUDA_SUCCESS
}

// CuMemPoolImportFromShareableHandle makes a pool over another process's file, on
// the device of the same number.
func (d *simulator) CuMemPoolImportFromShareableHandle(fd int32, typ driver.CUmemAllocationHandleType, flags uint64) (driver.CUmemoryPool, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if flags != 0 || typ != driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	defer d.enterPoolChange()()
	shared, ordinal, r := openSharedPool(fd, len(d.devices))
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.importMu.Lock()
	defer d.importMu.Unlock()
	if known := d.imports[shared.id]; known != nil {
		shared.file.letGo()
		known.returned++
		return known.handle, driver.CUDA_SUCCESS
	}
	p := newPool(d.devices[ordinal], 0)
	p.kind, p.shared = shared.kind, shared
	known := &importedPool{handle: d.addPool(p), returned: 1}
	if d.imports == nil {
		d.imports = map[uint64]*importedPool{}
	}
	d.imports[shared.id] = known
	return known.handle, driver.CUDA_SUCCESS
}

// An importedPool has one handle however often it is imported, as on NVIDIA's
// driver, 580, and is destroyed as often.
type importedPool struct {
	handle   driver.CUmemoryPool
	returned int
}

// mayDestroyImported reports whether an imported pool can go now; r is what
// cuMemPoolDestroy returns if it cannot.
func (d *simulator) mayDestroyImported(p *sharedPool) (now bool, r driver.CUresult) {
	d.importMu.Lock()
	defer d.importMu.Unlock()
	if d.space.lends(p) {
		return false, driver.CUDA_ERROR_INVALID_VALUE
	}
	if known := d.imports[p.id]; known != nil {
		if known.returned--; known.returned > 0 {
			return false, driver.CUDA_SUCCESS
		}
		delete(d.imports, p.id) // here, since the pool may be imported anew before it is destroyed
	}
	return true, driver.CUDA_SUCCESS
}

// forgetPool lets go of what a pool without a handle no longer needs: its file,
// which its allocations may still need, and its place among the imports.
func (d *simulator) forgetPool(p *pool) {
	if p.shared == nil {
		return
	}
	d.importMu.Lock()
	if known := d.imports[p.shared.id]; known != nil && known.handle == p.handle {
		delete(d.imports, p.shared.id)
	}
	d.importMu.Unlock()
	p.shared.file.letGo()
}

// exportData is the data about an allocation: the pool's number, its place and
// its size.
func exportData(words ...uint64) (data driver.CUmemPoolPtrExportData) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(data.Reserved[8*i:], w)
	}
	return data
}

// CuMemPoolExportPointer refuses memory of a pool without a descriptor, as
// NVIDIA's driver, 580, does.
func (d *simulator) CuMemPoolExportPointer(p driver.CUdeviceptr) (driver.CUmemPoolPtrExportData, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return driver.CUmemPoolPtrExportData{}, r
	}
	a := d.space.start(p)
	if a == nil || a.place == nil || a.place.pool.imported || !a.place.pool.exported.Load() {
		return driver.CUmemPoolPtrExportData{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	return exportData(sharedMagic, a.place.pool.id, uint64(a.place.offset), a.size), driver.CUDA_SUCCESS
}

// CuMemPoolImportPointer maps an allocation that is not freed. As NVIDIA's driver,
// 580, it does that once: imported again, through this pool or another import of
// it, memory is at the same address, and one free ends that for all. Host memory it
// refuses then.
func (d *simulator) CuMemPoolImportPointer(h driver.CUmemoryPool, data *driver.CUmemPoolPtrExportData) (driver.CUdeviceptr, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	p := d.pools.get(h)
	if p == nil || p.shared == nil || !p.shared.imported || data == nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	defer d.enterPoolChange()()
	offset := binary.LittleEndian.Uint64(data.Reserved[16:])
	size := binary.LittleEndian.Uint64(data.Reserved[24:])
	var state [2]uint64
	if *data != exportData(sharedMagic, p.shared.id, offset, size) || offset%sharedPage != 0 || offset > 1<<62 ||
		!p.shared.read(int64(offset), state[:]) || state != [2]uint64{sharedLive, size} {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	c := p.dev.primaryContext()
	if c == nil {
		return 0, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	d.importMu.Lock()
	defer d.importMu.Unlock()
	at := &place{pool: p.shared, offset: int64(offset)}
	if a := d.space.imported(c, at); a != nil {
		if p.kind != memPool {
			return 0, driver.CUDA_ERROR_ALREADY_MAPPED
		}
		return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
	}
	if at.use = p.shared.file.use(); at.use == nil { // destroyed meanwhile
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if p.kind != memPool {
		a, r := d.hostPooled(c, size, p, at)
		if r != driver.CUDA_SUCCESS {
			at.end(size)
			return 0, r
		}
		return d.addHostPooled(a)
	}
	a := &allocation{kind: memPool, pool: p, place: at}
	if r := d.allocate(c, size, a); r != driver.CUDA_SUCCESS {
		at.end(size)
		return 0, r
	}
	return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
}
