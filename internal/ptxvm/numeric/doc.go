// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package numeric computes what PTX instructions make of numbers: one lane's
// operands in, its result out. It knows the instruction's modifiers (package
// ptxir), and neither registers nor lanes.
package numeric
