// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package ptx turns PTX text into a tree and back. It knows the syntax of the
// language and nothing of what the instructions mean: an opcode is a word with
// modifiers and operands, whether or not anything can run it. Package ptxir
// checks and lowers the tree.
//
// Accepted is PTX ISA 6.0 to 9.x as nvcc, NVRTC, clang, Numba and Triton emit
// it and as people write it by hand, with the strictness of ptxas but for a few
// liberties that change no meaning: directives of old versions, unnamed
// parameters of prototypes, sums as sizes of arrays, a byte order mark,
// trailing NULs, names in UTF-8, two linkages of one symbol.
//
// Comments are dropped, DWARF sections are skipped, constant expressions are
// folded, and a declaration of several names becomes several declarations.
// [DebugParams] alone reads DWARF, for the types of parameters in the source.
//
// # Errors
//
// Whatever the text, [Parse] and [Signatures] return a tree or a
// [*SyntaxError] and never panic; nesting is limited to [MaxDepth].
//
// # Concurrency
//
// A tree is plain data. The functions of this package keep no state.
package ptx
