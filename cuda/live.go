// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "sync/atomic"

// liveCounts counts driver objects that were created and not destroyed. It
// exists for leak tests and reports; nothing depends on it.
type liveCounts struct {
	streams, events, allocations, pools, modules, greens, textures, arrays, surfaces atomic.Int64
	mipmaps                                                                          atomic.Int64
	semaphores, externals                                                            atomic.Int64 // of other APIs
}

// Live returns how many driver objects this package holds open, by kind:
// streams, events, allocations, pools, modules, green contexts, textures, arrays,
// mipmapped arrays, surfaces, and semaphores and memory of other APIs. Kinds with
// none are absent. Closed objects count while they are in use or wait for the end of
// a capture.
func (d *Driver) Live() map[string]int {
	m := make(map[string]int)
	for name, n := range map[string]*atomic.Int64{
		"Stream": &d.live.streams, "Event": &d.live.events, "Allocation": &d.live.allocations,
		"MemoryPool": &d.live.pools, "Module": &d.live.modules, "GreenContext": &d.live.greens,
		"Texture": &d.live.textures, "Array": &d.live.arrays, "MipmappedArray": &d.live.mipmaps, "Surface": &d.live.surfaces,
		"ExternalSemaphore": &d.live.semaphores, "ExternalMemory": &d.live.externals,
	} {
		if v := n.Load(); v != 0 {
			m[name] = int(v)
		}
	}
	return m
}
