// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "strconv"

func itoa(v int32) string { return strconv.FormatInt(int64(v), 10) }
