// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package shadow remembers of ranges of memory who accessed each word last, and
// which bytes were written. What that means is up to package check.
package shadow
