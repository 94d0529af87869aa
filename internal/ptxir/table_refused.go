// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	sectionTexture  = "Texture Instructions"
	sectionSurface  = "Surface Instructions"
	sectionVideo    = "Video Instructions"
	sectionCluster  = "Parallel Synchronization and Communication Instructions"
	sectionBulk     = "Data Movement and Conversion Instructions: Asynchronous copy"
	sectionStack    = "Stack Manipulation Instructions"
	sectionMma      = "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"
	sectionTensor   = "TensorCore 5th Generation Family Instructions"
	sectionMulti    = "Data Movement and Conversion Instructions: multimem"
	reasonTexture   = "textures are not simulated"
	reasonSurface   = "surfaces are not simulated"
	reasonVideo     = "SIMD video instructions are not simulated"
	reasonCluster   = "clusters of blocks are not simulated"
	reasonBulk      = "bulk and tensor copies (TMA) are not simulated"
	reasonMulti     = "multicast memory is not simulated"
	reasonWgmma     = "warpgroup matrix instructions are not simulated"
	reasonTcgen     = "fifth-generation tensor cores are not simulated"
	reasonStack     = "the stack pointer of device functions is not simulated"
	hintTexture     = "read from global memory instead"
	hintOlder       = "compile for sm_75 or sm_80, where libraries take another path"
	hintNoVideo     = "write it as ordinary integer instructions"
	hintFixedStack  = "use arrays of a fixed size"
	sectionControls = "Control Flow Instructions"
)

func refuse(reason, section, hint string, names ...string) []form {
	list := make([]form, len(names))
	for i, name := range names {
		list[i] = form{name: name, types: "*", reason: reason, section: section, hint: hint}
	}
	return list
}

// refusedForms are the instructions of the PTX ISA that cannot run here: valid
// text that makes a kernel unusable.
var refusedForms = func() (list []form) {
	add := func(f []form) { list = append(list, f...) }
	add(refuse(reasonTexture, sectionTexture, hintTexture, "tex", "tld4", "txq", "istypep"))
	add(refuse(reasonSurface, sectionSurface, hintTexture, "suld", "sust", "sured", "suq"))
	add(refuse(reasonVideo, sectionVideo, hintNoVideo, "vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2",
		"vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"))
	add(refuse(reasonCluster, sectionCluster, hintOlder, "barrier.cluster.arrive", "barrier.cluster.wait", "mapa", "getctarank", "st.async", "red.async",
		"fence.proxy.tensormap::generic", "clusterlaunchcontrol"))
	add(refuse(reasonBulk, sectionBulk, hintOlder, "cp.async.bulk", "cp.reduce.async.bulk", "prefetch.tensormap", "tensormap",
		"fence.proxy.tensormap", "mbarrier.complete_tx", "st.bulk"))
	add(refuse(reasonMulti, sectionMulti, hintOlder, "multimem"))
	add(refuse(reasonWgmma, sectionMma, hintOlder, "wgmma"))
	// What is left of families that the other tables hold.
	add(refuse("matrices of 8-bit and smaller elements are not simulated", "Warp Level Matrix Instructions", hintOlder, "ldmatrix", "stmatrix"))
	add(refuse(reasonTcgen, sectionTensor, hintOlder, "tcgen05"))
	add(refuse(reasonStack, sectionStack, hintFixedStack, "stacksave", "stackrestore", "alloca"))
	return list
}()
