// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep has only tests: of the numbers that instructions compute. Each runs
// a kernel over very many operands, and compares every result with a reference that
// shares no code with the simulated device.
package sweep
