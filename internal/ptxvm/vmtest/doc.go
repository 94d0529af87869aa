// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package vmtest holds what tests of the simulated device share: modules from text,
// buffers, kernels that every room needs, and the cases of testdata.
package vmtest
