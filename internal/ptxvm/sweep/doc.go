// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep has tests alone: of the numbers that instructions compute. Each
// runs in a kernel over very many operands, and every result is compared with a
// reference that shares no code with the simulated device.
package sweep
