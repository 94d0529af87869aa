// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// device is one simulated device.
type device struct {
	sim         *simulator
	ordinal     int
	profile     profile
	attributes  map[driver.CUdevice_attribute]int32 // immutable
	vm          *ptxvm.Device
	memory      *memory.Memory
	defaultPool *pool
	poolSlack   atomic.Int64 // bytes that pools reserve and do not use
	cancel      canceler
	graphs      graphUsage

	poolsMu sync.Mutex
	pools   []*pool // guarded by poolsMu

	// life keeps a context from being made while the one before it is reset.
	life    sync.Mutex
	mu      sync.Mutex
	primary *context // guarded by mu; nil while it has no holder, and from a reset to the next retain
	holders int      // guarded by mu
}

func newDevice(d *simulator, ordinal int) *device {
	p := profiles[d.config.major*10+d.config.minor]
	dev := &device{
		sim: d, ordinal: ordinal, profile: p, attributes: d.config.attributes(ordinal),
		vm: ptxvm.NewDevice(ptxvm.Config{
			Multiprocessors: multiprocessors,
			Workers:         d.config.workers,
			MemoryBytes:     d.config.memory,
			CCMajor:         d.config.major,
			CCMinor:         d.config.minor,
			SharedBytes:     uint32(p.sharedOptin),
			StepBudget:      d.config.steps,
		}),
	}
	dev.memory = dev.vm.Memory()
	dev.defaultPool = newPool(dev, 0)
	dev.defaultPool.handle = d.pools.add(dev.defaultPool)
	dev.pools = []*pool{dev.defaultPool}
	return dev
}

func (dev *device) primaryContext() *context {
	dev.mu.Lock()
	defer dev.mu.Unlock()
	return dev.primary
}

// device returns the device of that number.
func (d *simulator) device(dev driver.CUdevice) (*device, driver.CUresult) {
	if !d.initialized.Load() {
		return nil, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	if dev < 0 || int(dev) >= len(d.devices) {
		return nil, driver.CUDA_ERROR_INVALID_DEVICE
	}
	return d.devices[dev], driver.CUDA_SUCCESS
}

func (d *simulator) CuInit(flags uint32) driver.CUresult {
	if flags != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.initialized.Store(true)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuDriverGetVersion() (int32, driver.CUresult) {
	return driverVersion, driver.CUDA_SUCCESS
}

func (d *simulator) CuDeviceGetCount() (int32, driver.CUresult) {
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	return int32(len(d.devices)), driver.CUDA_SUCCESS
}

func (d *simulator) CuDeviceGet(ordinal int32) (driver.CUdevice, driver.CUresult) {
	_, r := d.device(driver.CUdevice(ordinal))
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return driver.CUdevice(ordinal), r
}

func (d *simulator) CuDeviceGetName(dev driver.CUdevice) (string, driver.CUresult) {
	if _, r := d.device(dev); r != driver.CUDA_SUCCESS {
		return "", r
	}
	return fmt.Sprintf("cudago simulated device (sm_%d%d)", d.config.major, d.config.minor), driver.CUDA_SUCCESS
}

// CuDeviceGetUuid spells "cudago-sim" and the ordinal: the same in each process.
func (d *simulator) CuDeviceGetUuid(dev driver.CUdevice) (uuid [16]byte, r driver.CUresult) {
	if _, r := d.device(dev); r != driver.CUDA_SUCCESS {
		return uuid, r
	}
	copy(uuid[:], "cudago-sim")
	uuid[15] = byte(dev)
	return uuid, driver.CUDA_SUCCESS
}

func (d *simulator) CuDeviceTotalMem(dev driver.CUdevice) (uint64, driver.CUresult) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	_, total := v.memory.Info()
	return total, r
}

func (d *simulator) CuDeviceGetAttribute(attrib driver.CUdevice_attribute, dev driver.CUdevice) (int32, driver.CUresult) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if attrib <= 0 || attrib > driver.CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return v.attributes[attrib], r
}

func (d *simulator) CuDeviceGetPCIBusId(dev driver.CUdevice) (string, driver.CUresult) {
	if _, r := d.device(dev); r != driver.CUDA_SUCCESS {
		return "", r
	}
	return fmt.Sprintf("0000:00:%02X.0", int(dev)), driver.CUDA_SUCCESS
}

// CuDeviceCanAccessPeer says that any two devices can.
func (d *simulator) CuDeviceCanAccessPeer(dev, peer driver.CUdevice) (bool, driver.CUresult) {
	if _, r := d.device(dev); r != driver.CUDA_SUCCESS {
		return false, r
	}
	_, r := d.device(peer)
	return dev != peer && r == driver.CUDA_SUCCESS, r
}
