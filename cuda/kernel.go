// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptx"
)

// A Kernel is a function that runs on a device. Get one from
// [ObjectCode.Kernel].
//
// # Lifetime
//
// Close a Kernel when done; launches under way complete. An open Kernel, and
// each [Kernel.Retain] until its Release, keeps its [Module] loaded.
//
// Safe for concurrent use.
type Kernel struct {
	m            *Module
	h            driver.CUfunction
	name, symbol string
	signature    Signature
	closed       atomic.Bool
}

// A Param is one parameter of a kernel.
type Param struct {
	// Name is the parameter's name in the PTX, where that is known.
	Name string
	// Kind is the type in PTX's terms: "f32", "f64", "u8" to "u64", "s8" to
	// "s64", "b8[]" for a struct or array. C++'s signed integers may well be
	// "u32" here, and pointers are "u64". Where only the size is known it is "b8"
	// to "b64", or "b8[]".
	Kind string
	// Offset and Size are bytes in the parameter block, Align is its alignment.
	Offset, Size, Align uint32
	// Pointer says that the PTX declares a pointer; false says nothing.
	Pointer bool
}

// A Signature lists a kernel's parameters in order.
type Signature []Param

// String returns "(f32, u64, u64, u32)".
func (s Signature) String() string {
	kinds := make([]string, len(s))
	for i, p := range s {
		kinds[i] = p.Kind
		if p.IsStruct() {
			kinds[i] = fmt.Sprintf("b8[%d]", p.Size)
		}
	}
	return "(" + strings.Join(kinds, ", ") + ")"
}

// Size returns the size in bytes of the parameter block.
func (s Signature) Size() uint32 {
	if len(s) == 0 {
		return 0
	}
	last := s[len(s)-1]
	return last.Offset + last.Size
}

// IsStruct reports whether p is a struct or an array, which only bytes can be
// given for.
func (p Param) IsStruct() bool { return p.Kind == structKind }

// IsFloat reports whether p is a floating-point number.
func (p Param) IsFloat() bool { return p.Kind == "f32" || p.Kind == "f64" }

const structKind = "b8[]"

func signatureFromPTX(params []ptx.Param) Signature {
	sig := make(Signature, len(params))
	for i, p := range params {
		kind := p.Type
		if p.ArrayLen != 0 || p.Size > 8 {
			kind = structKind
		}
		sig[i] = Param{Name: p.Name, Kind: kind, Offset: p.Offset, Size: p.Size, Align: p.Align, Pointer: p.Pointer}
	}
	return sig
}

func untypedKind(size uint64) string {
	switch size {
	case 1, 2, 4, 8:
		return fmt.Sprintf("b%d", 8*size)
	}
	return structKind
}

func naturalAlign(size uint64) uint32 {
	switch size {
	case 1, 2, 4, 8:
		return uint32(size)
	}
	return 1 // unknown; what matters is the offset
}

// Name returns the name by which the kernel was requested.
func (k *Kernel) Name() string { return k.name }

// Symbol returns the kernel's name in the code, which for C++ may be mangled.
func (k *Kernel) Symbol() string { return k.symbol }

// Handle returns the CUfunction, which is valid as long as the module has a
// holder.
func (k *Kernel) Handle() uintptr { return uintptr(k.h) }

// Module returns the module that k is in.
func (k *Kernel) Module() *Module { return k.m }

// Device returns the device that k runs on.
func (k *Kernel) Device() *Device { return k.m.ctx.dev }

// Context returns the context that k belongs to.
func (k *Kernel) Context() *Context { return k.m.ctx }

// Signature returns the kernel's parameters. It must not be changed.
func (k *Kernel) Signature() Signature { return k.signature }

// Stores tells, for each parameter, whether the kernel may store something
// through it; nil if that is not known, because there is no PTX. False is a
// promise. The first call for a code reads all of its PTX.
func (k *Kernel) Stores() []bool { return k.m.code.storesOf(k.symbol) }

// String returns `kernel "saxpy"(f32, u64, u64, u32)`.
func (k *Kernel) String() string { return fmt.Sprintf("kernel %q%v", k.name, k.signature) }

// Retain keeps the module loaded until Release, even if k is closed.
//
// Errors: [ErrClosed] if the module has already been unloaded.
func (k *Kernel) Retain() error { return k.m.Retain() }

// Release undoes one Retain.
func (k *Kernel) Release() { k.m.Release() }

// begin keeps the module loaded for the length of a call.
func (k *Kernel) begin() error {
	if k.m.ctx.IsLost() {
		return k.m.ctx.lostError(fmt.Sprintf("kernel %q", k.name))
	}
	if k.closed.Load() || !k.m.refs.retain() {
		return &ClosedError{fmt.Sprintf("kernel %q", k.name)}
	}
	return nil
}

// IsClosed reports whether Close was called.
func (k *Kernel) IsClosed() bool { return k.closed.Load() }

// Close ends the use of k. Closing twice is fine.
func (k *Kernel) Close() error {
	if !k.closed.Swap(true) {
		k.m.Release()
	}
	return nil
}

// A KernelAttribute names a fact about a kernel.
type KernelAttribute int32

// Attributes of a kernel. From cuda.h, CUDA 12.4. The last two can be set.
const (
	KernelMaxThreadsPerBlock     KernelAttribute = 0 // registers and launch bounds considered
	KernelSharedSize             KernelAttribute = 1 // static shared memory, bytes
	KernelConstSize              KernelAttribute = 2 // bytes
	KernelLocalSize              KernelAttribute = 3 // local memory of a thread, bytes
	KernelRegisterCount          KernelAttribute = 4 // of a thread
	KernelPTXVersion             KernelAttribute = 5
	KernelBinaryVersion          KernelAttribute = 6
	KernelCacheModeCA            KernelAttribute = 7
	KernelMaxDynamicSharedSize   KernelAttribute = 8 // bytes that a launch may ask for
	KernelSharedMemoryPreference KernelAttribute = 9 // percent of the cache; -1 is the driver's choice
)

// MaxLocalSize is more local memory than a thread can have, in bytes: the driver
// loads a kernel that needs more, and does not launch it. CUDA Programming Guide,
// "Technical Specifications per Compute Capability".
const MaxLocalSize = 512 << 10

// KernelAttributeNames returns every attribute by its name for Python.
func KernelAttributeNames() map[string]KernelAttribute {
	return map[string]KernelAttribute{
		"max_threads_per_block":    KernelMaxThreadsPerBlock,
		"shared_size":              KernelSharedSize,
		"const_size":               KernelConstSize,
		"local_size":               KernelLocalSize,
		"register_count":           KernelRegisterCount,
		"ptx_version":              KernelPTXVersion,
		"binary_version":           KernelBinaryVersion,
		"cache_mode_ca":            KernelCacheModeCA,
		"max_dynamic_shared_size":  KernelMaxDynamicSharedSize,
		"shared_memory_preference": KernelSharedMemoryPreference,
	}
}

// Load loads k's code on its device, so that the first launch need not, which
// would wait for other work. It calls cuFuncLoad, and does nothing if the
// driver is older than CUDA 12.4, which introduced that call.
//
// Blocks while the device has work, as a rule.
func (k *Kernel) Load() error {
	_, err := callKernel(k, "cuFuncLoad", func(api driver.API) (none, driver.CUresult) {
		defer k.m.ctx.drv.relax()()
		r := api.CuFuncLoad(k.h)
		if r == driver.CUDA_ERROR_NOT_SUPPORTED {
			r = driver.CUDA_SUCCESS
		}
		return none{}, r
	})
	return err
}

// Attribute calls cuFuncGetAttribute.
func (k *Kernel) Attribute(a KernelAttribute) (int, error) {
	return callKernel(k, "cuFuncGetAttribute", func(api driver.API) (int, driver.CUresult) {
		v, r := api.CuFuncGetAttribute(driver.CUfunction_attribute(a), k.h)
		return int(v), r
	})
}

// SetAttribute calls cuFuncSetAttribute. It changes the kernel for all its
// users.
//
// Errors: an [*ArgumentError] if the attribute cannot have the value.
func (k *Kernel) SetAttribute(a KernelAttribute, value int) error {
	v := clampInt32(value)
	if int(v) != value {
		return overflow("value", "must fit in 32 bits, got %d", value)
	}
	if err := k.checkAttribute(a, value); err != nil {
		return err
	}
	_, err := callKernel(k, "cuFuncSetAttribute", func(api driver.API) (struct{}, driver.CUresult) {
		return struct{}{}, api.CuFuncSetAttribute(k.h, driver.CUfunction_attribute(a), v)
	})
	return err
}

// checkAttribute refuses a value that the driver would refuse without saying why.
func (k *Kernel) checkAttribute(a KernelAttribute, value int) error {
	switch a {
	case KernelMaxDynamicSharedSize:
		most, err := k.MaxDynamicSharedSize()
		if err == nil && (value < 0 || value > most) {
			err = badValue("max_dynamic_shared_size", "must be 0 to %d bytes for kernel %q on %v, got %d", most, k.name, k.Device(), value)
		}
		return err
	case KernelSharedMemoryPreference:
		if value < -1 || value > 100 {
			return badValue("shared_memory_preference", "must be 0 to 100 percent, or -1 for the driver's choice, got %d", value)
		}
	}
	return nil
}

// MaxDynamicSharedSize returns how many bytes of dynamic shared memory a block of
// k can have at most, once [KernelMaxDynamicSharedSize] asks for them. It calls
// cuDeviceGetAttribute and cuFuncGetAttribute.
func (k *Kernel) MaxDynamicSharedSize() (int, error) {
	all, err := k.Device().Attribute(MaxSharedMemoryPerBlockOptin)
	if err != nil {
		return 0, err
	}
	static, err := k.Attribute(KernelSharedSize)
	return max(0, all-static), err
}

// MaxThreadsPerBlock returns how many threads a block of k can have. It calls
// cuFuncGetAttribute.
func (k *Kernel) MaxThreadsPerBlock() (int, error) { return k.Attribute(KernelMaxThreadsPerBlock) }

// MaxActiveBlocks returns how many blocks of blockSize threads, with sharedMemory
// bytes of dynamic shared memory each, can run on a multiprocessor at once. It
// calls cuOccupancyMaxActiveBlocksPerMultiprocessor.
func (k *Kernel) MaxActiveBlocks(blockSize int, sharedMemory uint64) (int, error) {
	if blockSize < 1 || blockSize > 1<<20 {
		return 0, badValue("block size", "must be at least 1 and fit the device, got %d", blockSize)
	}
	v, err := callKernel(k, "cuOccupancyMaxActiveBlocksPerMultiprocessor", func(api driver.API) (int, driver.CUresult) {
		n, r := api.CuOccupancyMaxActiveBlocksPerMultiprocessor(k.h, int32(blockSize), sharedMemory)
		return int(n), r
	})
	return v, explained(err, "kernel %q, blocks of %d threads and %d bytes of shared memory", k.name, blockSize, sharedMemory)
}

// callKernel is call1 with k's module held.
func callKernel[T any](k *Kernel, op string, f func(driver.API) (T, driver.CUresult)) (T, error) {
	if err := k.begin(); err != nil {
		var zero T
		return zero, err
	}
	defer k.m.Release()
	return call1(k.m.ctx, op, f)
}
