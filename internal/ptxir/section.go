// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// section is a section of the chapter "Instructions" of the PTX ISA document,
// with the rows of its instructions. An instruction whose types belong to
// several sections has rows in each.
type section struct {
	title string
	rows  [][]form
	// open sections have modifiers that the rows do not know: what is a modifier
	// of PTX at all is refused there, as it may be valid. Elsewhere it is not PTX.
	open bool
}

const (
	sectionMove    = "Data Movement and Conversion Instructions"
	sectionSync    = "Parallel Synchronization and Communication Instructions"
	sectionControl = "Control Flow Instructions"
	sectionMatrix  = "Warp Level Matrix Multiply-Accumulate Instructions"
)

// sections are in the document's order.
var sections = []section{
	{title: "Integer Arithmetic Instructions", rows: [][]form{integerForms}},
	{title: "Extended-Precision Integer Arithmetic Instructions", rows: [][]form{extendedForms}},
	{title: "Floating-Point Instructions", rows: [][]form{floatForms}},
	{title: "Half Precision Floating-Point Instructions", rows: [][]form{halfForms}},
	{title: "Mixed Precision Floating-Point Instructions", rows: [][]form{mixedForms}},
	{title: "Comparison and Selection Instructions", rows: [][]form{compareForms}},
	{title: "Half Precision Comparison Instructions", rows: [][]form{halfCompareForms}},
	{title: "Logic and Shift Instructions", rows: [][]form{logicForms}},
	{title: sectionMove, rows: [][]form{
		moveForms, accessForms, convertForms,
		refuse(reasonCluster, hintOlder, "mapa", "getctarank", "st.async"),
		refuse(reasonMulti, hintOlder, "multimem"),
		refuse(reasonBulk, hintOlder, "st.bulk"),
	}},
	{title: sectionMove + ": Asynchronous copy", rows: [][]form{
		copyForms,
		refuse(reasonBulk, hintForms, "cp.async.bulk", "cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor"),
		refuse(reasonBulk, hintOlder, "cp.reduce.async.bulk", "applypriority.async.bulk", "tensormap"),
	}},
	{title: "Texture Instructions", rows: [][]form{textureForms, refuse(reasonTexture, hintTexture, "tex", "tld4", "txq", "istypep")}},
	{title: "Surface Instructions", rows: [][]form{surfaceForms, refuse(reasonSurface, hintTexture, "suld", "sust", "sured", "suq")}},
	{title: sectionControl, rows: [][]form{controlForms}},
	{title: sectionSync, rows: [][]form{
		warpForms, syncForms,
		refuse(reasonCluster, hintOlder, "barrier.cluster.arrive", "barrier.cluster.wait", "red.async", "clusterlaunchcontrol"),
		refuse(reasonBulk, hintOlder, "fence.proxy.tensormap", "fence.proxy.tensormap::generic", "mbarrier.complete_tx"),
	}},
	{title: sectionMatrix, open: true, rows: [][]form{matrixForms}},
	{title: "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", rows: [][]form{refuse(reasonWgmma, hintOlder, "wgmma")}},
	{title: "TensorCore 5th Generation Family Instructions", rows: [][]form{refuse(reasonTcgen, hintOlder, "tcgen05")}},
	{title: "Stack Manipulation Instructions", rows: [][]form{refuse(reasonStack, hintFixedStack, "stacksave", "stackrestore", "alloca")}},
	{title: "Scalar Video Instructions", rows: [][]form{videoForms}},
	{title: "SIMD Video Instructions", rows: [][]form{simdVideoForms}},
	{title: "Miscellaneous Instructions", rows: [][]form{miscForms}},
}
