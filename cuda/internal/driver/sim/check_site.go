// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "syscall"

// NoteSite is documented at driver.Checker.
func (d *simulator) NoteSite(site string) {
	k := &d.check
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sites == nil {
		k.sites = map[int]string{}
	}
	if tid := syscall.Gettid(); site == "" {
		delete(k.sites, tid)
	} else {
		k.sites[tid] = site
	}
	k.noted.Store(int32(len(k.sites)))
}

// site returns the place that makes this thread's call: the one noted with
// NoteSite, and the call itself.
func (k *checker) site(call string) string {
	if k.noted.Load() == 0 {
		return call
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	tid := syscall.Gettid()
	at := k.sites[tid]
	if at == "" {
		return call
	}
	delete(k.sites, tid)
	k.noted.Store(int32(len(k.sites)))
	if call == "" {
		return at
	}
	return at + " (" + call + ")"
}
