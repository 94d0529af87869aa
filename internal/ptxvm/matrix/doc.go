// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package matrix multiplies and transposes matrices that the lanes of a warp
// hold together in their registers: it knows which lane has what. How their rows
// come from memory is up to package lane.
package matrix
