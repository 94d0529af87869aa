// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"testing"
	"unsafe"
)

// As TestLayouts, for what is shared with other APIs.
func TestExternalLayouts(t *testing.T) {
	var (
		sem    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
		mem    CUDA_EXTERNAL_MEMORY_HANDLE_DESC
		part   CUDA_EXTERNAL_MEMORY_BUFFER_DESC
		signal CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS
		wait   CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
		sends  CUDA_EXT_SEM_SIGNAL_NODE_PARAMS
		waits  CUDA_EXT_SEM_WAIT_NODE_PARAMS
	)
	tests := []struct {
		name      string
		got, want uintptr
	}{
		{"CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC", unsafe.Sizeof(sem), 96},
		{"CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC.handle", unsafe.Offsetof(sem.Fd), 8},
		{"CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC.flags", unsafe.Offsetof(sem.Flags), 24},
		{"CUDA_EXTERNAL_MEMORY_HANDLE_DESC", unsafe.Sizeof(mem), 104},
		{"CUDA_EXTERNAL_MEMORY_HANDLE_DESC.handle", unsafe.Offsetof(mem.Fd), 8},
		{"CUDA_EXTERNAL_MEMORY_HANDLE_DESC.size", unsafe.Offsetof(mem.Size), 24},
		{"CUDA_EXTERNAL_MEMORY_HANDLE_DESC.flags", unsafe.Offsetof(mem.Flags), 32},
		{"CUDA_EXTERNAL_MEMORY_BUFFER_DESC", unsafe.Sizeof(part), 88},
		{"CUDA_EXTERNAL_MEMORY_BUFFER_DESC.flags", unsafe.Offsetof(part.Flags), 16},
		{"CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS", unsafe.Sizeof(signal), 144},
		{"CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS.flags", unsafe.Offsetof(signal.Flags), 72},
		{"CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS", unsafe.Sizeof(wait), 144},
		{"CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS.flags", unsafe.Offsetof(wait.Flags), 72},
		{"CUDA_EXT_SEM_SIGNAL_NODE_PARAMS", unsafe.Sizeof(sends), 24},
		{"CUDA_EXT_SEM_WAIT_NODE_PARAMS", unsafe.Sizeof(waits), 24},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, tt.got, tt.want)
		}
	}
}
