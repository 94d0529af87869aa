// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "unsafe"

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
