// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package api is the cold half of cudago's Python API: facts about the driver
// and its devices, tables of names, statistics. gopy turns it into the Python
// module cudago._gopy.api (make gen).
//
// Each fact is asked here and nowhere else. Nothing here is hot or holds a Python
// object, and so no fact of one is here; that is package native's work.
// A call through gopy costs 150 to 250 ns, and gopy cannot express buffers,
// references or defaults.
//
// # What may stand here
//
// gopy binds every exported name of the files without build tags, and drops
// what it cannot express without a word. So parameters are int, string or bool,
// and results are one of those, and an error. No function returns an error alone:
// gopy leaks 30 bytes for each nil one. No structs, no slices and no maps, because
// Python would get wrapper objects with a number that stands for the Go value, and
// gopy counts references to it in Python: Ctrl-C between the number and the count
// ends the process with a panic, or leaks the value. So tables are read by index,
// and several values at once are one JSON object. pyext/gen.py refuses anything else.
//
// A panic in a bound function ends the Python process, so every function that
// does more than read a table returns an error and defers contain.
//
// # Errors
//
// gopy raises RuntimeError with an error's text and loses the rest. The text is
// therefore what the encoder given to Use makes of the error, which the Python
// face turns into one of cudago's exceptions.
package api
