// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package register is the register memory of simulated warps. A register is a
// row of 32 values, one for each lane, a predicate a mask of 32 bits. An operand
// is the place of a row in the file of the running frame.
package register
