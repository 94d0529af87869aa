// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package shadow remembers who accessed each word of a range of memory last, and
// which bytes were written. Package check draws the conclusions.
package shadow
