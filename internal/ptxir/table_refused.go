// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	hintTexture    = "read from global memory instead"
	hintOlder      = "compile for sm_75 or sm_80, where libraries take another path"
	hintFixedStack = "use arrays of a fixed size"
	hintForms      = "the reference page of PTX instructions lists the forms that run"
	hintWide       = "take the address in a 64-bit register"
	hintLink       = "modules are not linked by themselves: link them with cudago.Linker, or put its source into the same program"

	reasonTexture = "of textures, only reads of single elements by a handle and coordinates are simulated"
	reasonSurface = "of surfaces, only loads and stores of bytes by a handle are simulated"
	reasonCluster = "clusters of blocks are not simulated"
	reasonBulk    = "of bulk and tensor copies (TMA), only plain and tiled loads, stores and prefetches by one block are simulated"
	reasonMulti   = "multicast memory is not simulated"
	reasonWgmma   = "warpgroup matrix instructions are not simulated"
	reasonTcgen   = "fifth-generation tensor cores are not simulated"
	reasonStack   = "the stack pointer of device functions is not simulated"
	reasonBytes   = "packed integers of 8 bits are not simulated"
)

// refuse makes rows for instructions that cannot run here at all: valid text
// that makes a kernel unusable.
func refuse(reason, hint string, names ...string) []form {
	list := make([]form, len(names))
	for i, name := range names {
		list[i] = form{name: name, types: "*", words: "*", reason: reason, hint: hint}
	}
	return list
}
