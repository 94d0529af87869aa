// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"log"
	"strings"
)

// writeResults writes the sentinel errors of package cuda, and what they mean.
func writeResults(results, explanations []row) {
	texts := make(map[string]string, len(explanations))
	for _, r := range explanations {
		texts[r.key] = r.text
	}
	var consts, table bytes.Buffer
	for _, r := range results {
		text, ok := texts[r.text]
		if !ok {
			text = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(r.text, "CUDA_ERROR_")), "_", " ")
		}
		delete(texts, r.text)
		fmt.Fprintf(&consts, "\t%s Result = %s // %s\n", resultName(r.text), r.key, text)
		fmt.Fprintf(&table, "\t%s: {%q, %q},\n", resultName(r.text), r.text, text)
	}
	for name := range texts {
		log.Fatalf("explanations.txt: %s is not in results.txt", name)
	}
	writeGo("cuda/zresult.go", banner+"package cuda\n\n// Results of driver calls. From cuda.h, CUDA 13.5.\nconst (\n"+
		consts.String()+")\n\nvar resultTexts = map[Result]resultText{\n"+table.String()+"}\n")
}

// resultName turns CUDA_ERROR_OUT_OF_MEMORY into ErrorOutOfMemory.
func resultName(name string) string {
	return camel(strings.TrimPrefix(name, "CUDA_"))
}

// writeAttributes writes the device attributes of package cuda.
func writeAttributes(attributes []row) {
	var consts, table bytes.Buffer
	for _, r := range attributes {
		name := strings.TrimPrefix(r.text, "CU_DEVICE_ATTRIBUTE_")
		fmt.Fprintf(&consts, "\t%s Attribute = %s\n", camel(name), r.key)
		fmt.Fprintf(&table, "\t%q: %s,\n", strings.ToLower(name), camel(name))
	}
	writeGo("cuda/zattribute.go", banner+"package cuda\n\n// Device attributes. From cuda.h, CUDA 13.5.\nconst (\n"+
		consts.String()+")\n\nvar attributesByName = map[string]Attribute{\n"+table.String()+"}\n")
}

// initialisms are the words that Go's style keeps in capitals, and the words
// that cuda.h writes without a gap.
var initialisms = map[string]string{
	"ATS": "ATS", "CIG": "CIG", "CUDA": "CUDA", "D3D12": "D3D12", "DMA": "DMA", "ECC": "ECC", "GPU": "GPU", "GPUDIRECT": "GPUDirect",
	"ID": "ID", "IPC": "IPC", "JIT": "JIT", "KMT": "KMT", "L1": "L1", "L2": "L2", "MPS": "MPS", "NUMA": "NUMA", "PC": "PC",
	"PCI": "PCI", "POSIX": "POSIX", "PTX": "PTX", "RDMA": "RDMA", "RPC": "RPC", "TCC": "TCC", "VMM": "VMM", "CDP": "CDP",
	"NVLINK": "NVLink", "MEMPOOL": "MemPool", "TEX2D": "Tex2D", "TEXTURECUBEMAP": "TextureCubemap", "SURFACECUBEMAP": "SurfaceCubemap",
	"TEXTURE1D": "Texture1D", "TEXTURE2D": "Texture2D", "TEXTURE3D": "Texture3D",
	"SURFACE1D": "Surface1D", "SURFACE2D": "Surface2D", "SURFACE3D": "Surface3D",
}

// camel turns MAX_THREADS_PER_BLOCK into MaxThreadsPerBlock.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if s, ok := initialisms[word]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return b.String()
}
