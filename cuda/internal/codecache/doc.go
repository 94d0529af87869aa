// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package codecache keeps what a compiler made, in memory and in a folder that
// several processes share.
//
// An entry is found by a [Key], a hash of everything that the compiler was told.
// Files that the source includes are not part of the key, because which ones
// those are is only known after reading them: an entry has a [Files] list, and is
// used only while they are as they were. This is what ccache calls a manifest.
//
// The folder is trusted only if it belongs to this user and nobody else can
// write to it: code from it will run. An entry is written to a temporary file
// and renamed, so that readers see all of it or nothing, and begins with a
// checksum, which finds what a full disk or a crash has left.
//
// Locks: a Cache's mutex guards its maps and counts and is never held while a
// file is read or written.
package codecache
