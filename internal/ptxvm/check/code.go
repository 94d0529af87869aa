// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// Code is what the checks know of the watched form of a kernel.
type Code struct {
	Kernel        string
	Files         []string // of the module
	accesses      []access
	watches       []watched
	follows       []follow
	sharedVars    []placedVar
	DynamicOffset uint32 // where dynamic shared memory starts
}

// Function is what the checks know of a function of a kernel.
type Function struct {
	IR         *ptxir.Func
	LocalBytes uint32
	followed   int32 // registers whose lanes a check follows; see follow
	unwritten  []unwrittenRegister
	locals     []placedVar
}

// Decoder puts checks around the instructions of a kernel.
type Decoder struct {
	lane *lane.Decoder
	code *Code
	fn   *Function // the one being decoded
	// numbers are those of its followed registers; nil if there are none.
	numbers []int32
	pieces  map[*ptxir.Instr]bool // see findPieces
}

// NameShared notes a shared variable's place. Variables without a size are all the
// same one: the dynamic shared memory.
func (k *Code) NameShared(v *ptxir.Var, off uint32) {
	if v.Size > 0 {
		k.sharedVars = append(k.sharedVars, placedVar{localName(v), uint64(off), v.Size})
	}
}

// sharedPlace says in which variable an offset in shared memory lies.
func (k *Code) sharedPlace(off uint64) string {
	for _, v := range k.sharedVars {
		if off-v.off < v.size {
			return fmt.Sprintf("at offset %d of shared variable %s of %d bytes", off-v.off, v.name, v.size)
		}
	}
	if off >= uint64(k.DynamicOffset) {
		return fmt.Sprintf("at offset %d of dynamic shared memory", off-uint64(k.DynamicOffset))
	}
	return "between two shared variables"
}

// NameLocal notes the place of one of a function's local variables.
func (fn *Function) NameLocal(v *ptxir.Var, off uint32) {
	fn.locals = append(fn.locals, placedVar{localName(v), uint64(off), v.Size})
}

// placedVar is a variable's place in shared memory or in a frame, for reports.
type placedVar struct {
	name      string
	off, size uint64
}

// localName is the source's name of a variable of a function. In PTX it is the end
// of a mangled name, "_ZZ…E<length><name>".
func localName(v *ptxir.Var) string {
	if !strings.HasPrefix(v.Name, "_ZZ") {
		return v.Name
	}
	for i := strings.LastIndexByte(v.Name, 'E'); i > 0; i = strings.LastIndexByte(v.Name[:i], 'E') {
		rest := strings.TrimLeft(v.Name[i+1:], "0123456789")
		n, err := strconv.Atoi(strings.TrimSuffix(v.Name[i+1:], rest))
		if err != nil || n == 0 || n > len(rest) {
			continue
		}
		if name, number := rest[:n], rest[n:]; number == "" || number[0] == '_' {
			return name
		}
	}
	return v.Name
}

// file is the source file that a place in the PTX was compiled from.
func (k *Code) file(pos ptxir.Pos) string {
	if pos.File > 0 && pos.File < len(k.Files) {
		return k.Files[pos.File]
	}
	return ""
}

// NewDecoder returns a Decoder that puts a kernel's checks around the
// instructions that l decodes.
func NewDecoder(l *lane.Decoder, k *Code) *Decoder { return &Decoder{lane: l, code: k} }
