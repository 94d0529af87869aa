// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package nvidia is driver.API on NVIDIA's libcuda.
//
// The library is opened at run time, so that this package builds and loads on
// machines without it, and each call is looked up by cuGetProcAddress in the
// version whose signature calls.h has. A method passes its arguments on and
// does nothing else; what a call means and when it fails is in NVIDIA's "CUDA
// Driver API", and what differs from it in package driver.
//
// Nothing here takes a lock. A call that blocks holds its OS thread and lets
// other goroutines run.
package nvidia

// #include <stdint.h>
import "C"

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// oldestVersion is the oldest driver that is supported, as
// cuDriverGetVersion counts: CUDA 12.4.
const oldestVersion = 12040

// Options says where to look for the driver library. The zero value is the
// system's own.
type Options struct {
	// Libraries are file names or paths for dlopen, tried in order in place
	// of CUDAGO_LIBCUDA and the default names.
	Libraries []string
}

// UnsuitableError says that a driver library was opened and cannot be used.
type UnsuitableError struct {
	Library string
	Version int32    // as cuDriverGetVersion counts; zero if it did not say
	Missing []string // required calls that it does not have
}

func (e *UnsuitableError) Error() string {
	switch {
	case e.Version == 0:
		return e.Library + " does not say which CUDA version it supports: not a working CUDA driver"
	case e.Version < oldestVersion:
		return fmt.Sprintf("%s supports CUDA up to %s; cudago needs a driver for CUDA %s or newer",
			e.Library, versionText(e.Version), versionText(oldestVersion))
	}
	return fmt.Sprintf("%s (CUDA %s) lacks %s", e.Library, versionText(e.Version), strings.Join(e.Missing, ", "))
}

func versionText(v int32) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// batchVersion is the CUDA version that introduced cuMemcpyBatchAsync as calls.txt
// has it.
const batchVersion = 13000

// binding implements driver.API, which has the contract of each method. It is
// immutable.
type binding struct {
	fn [entryCount]C.uintptr_t // zero: not in this driver
}

var _ driver.API = (*binding)(nil)

// Open opens the driver library and looks up its calls. It initializes
// nothing: CuInit is the caller's.
//
// Errors: [*NotFoundError] if no library could be opened; [*UnsuitableError]
// if one was opened that is too old or incomplete.
func Open(o Options) (driver.API, error) {
	lib, err := openLibrary(candidates(o))
	if err != nil {
		return nil, err
	}
	d, missing := resolve(lib)
	version, r := d.CuDriverGetVersion()
	if r != driver.CUDA_SUCCESS || version < oldestVersion {
		return nil, &UnsuitableError{Library: lib.name, Version: version}
	}
	// An older driver may answer with the signature of CUDA 12.8, which has a
	// parameter more.
	if version < batchVersion {
		d.fn[cuMemcpyBatchAsync] = 0
	}
	if len(missing) > 0 {
		return nil, &UnsuitableError{Library: lib.name, Version: version, Missing: missing}
	}
	return d, nil
}

// resolve looks up every entry and names the required ones that are missing.
func resolve(lib library) (d *binding, missing []string) {
	d = new(binding)
	get := lib.symbol("cuGetProcAddress_v2")
	for i, e := range entries {
		if get != 0 {
			d.fn[i], _ = procAddress(get, e.name, e.version)
		} else {
			d.fn[i] = lib.symbol(e.name + e.suffix)
		}
		if d.fn[i] == 0 && e.required {
			missing = append(missing, e.name)
		}
	}
	return d, missing
}

func (d *binding) Name() string { return "nvidia" }

func (d *binding) EntryPoint(name string) uintptr {
	for i, e := range entries {
		if e.name == name {
			return uintptr(d.fn[i])
		}
	}
	return 0
}

// flag is a bool in C.
func flag(b bool) C.uint {
	if b {
		return 1
	}
	return 0
}

func (d *binding) AllowHost(p uintptr, size uint64, readOnly bool)    {}
func (d *binding) DisallowHost(p uintptr, size uint64, readOnly bool) {}

func (d *binding) FaultReport(ctx driver.CUcontext) string { return "" }

// Close does nothing: the library stays open, see library.
func (d *binding) Close() error { return nil }
