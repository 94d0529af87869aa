// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

// HostAccess is documented at driver.Checker.
func (d *simulator) HostAccess(p uintptr, size uint64) {}
