// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

// Virtual device addresses. Bits 56 and up tell the windows apart; bit 55 set
// below a clear bit 63 is canonical on no 48-bit or 57-bit machine, also where
// the hardware ignores the top byte.
const (
	WindowShift  = 56
	GlobalWindow = 0x10
	SharedWindow = 0x11
	LocalWindow  = 0x12
	ParamWindow  = 0x13

	globalBase = GlobalWindow<<WindowShift | 1<<55
	SharedBase = SharedWindow<<WindowShift | 1<<55
	LocalBase  = LocalWindow<<WindowShift | 1<<55
	ParamBase  = ParamWindow<<WindowShift | 1<<55
)
