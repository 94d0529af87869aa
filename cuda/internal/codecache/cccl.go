// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"regexp"
	"strings"
)

// What CUDA's C++ libraries say by macros. Without these, no program that includes
// libcu++ or CUB could be cached.

// anotherName is a macro of libcu++, which is __has_include, or 0 or 1 for
// compilers without that. A macro with such a name is taken for __has_include in
// every file, whichever has its definition; one with another name, or another body,
// makes the answer unknown where it is defined.
var anotherName = regexp.MustCompile(`^\w*HAS_INCLUDE\([ \t]*(\w+)[ \t]*\)[ \t]+(__has_include(?:_next)?[ \t]*\([ \t]*(\w+)[ \t]*\)|[01])[ \t\r]*$`)

func asksForFile(word string) bool {
	switch word {
	case "__has_include", "__has_include_next", "__has_embed":
		return true
	}
	return strings.HasSuffix(word, "HAS_INCLUDE")
}

// computed is what Thrust includes by macros, with or without the file in the macro's
// name: as of CCCL 3.0 and 3.2.
var computed = regexp.MustCompile(`^__THRUST_(?:HOST|DEVICE)_SYSTEM_(?:ALGORITH_(?:DETAIL_)?HEADER_INCLUDE\((\w+\.h)\)|(\w+)_HEADER)[ \t\r]*(?://.*)?$`)

// thrustFiles lists what a macro of Thrust may stand for, whichever systems Thrust is
// compiled for; nil if it is none.
func thrustFiles(macro string) []string {
	if word, _, _ := strings.Cut(macro, " "); strings.TrimSpace(word) == "THRUST_MR_STD_MR_HEADER" {
		return []string{"memory_resource", "experimental/memory_resource"}
	}
	found := computed.FindStringSubmatch(macro)
	if found == nil {
		return nil
	}
	names := []string{found[1]}
	switch found[2] {
	case "":
	case "TAG":
		names = []string{"execution_policy.h"}
	case "MEMORY":
		names = []string{"memory.h", "memory_resource.h"}
	default:
		names = []string{strings.ToLower(found[2]) + ".h"}
	}
	var files []string
	for _, name := range names {
		for _, system := range []string{"cpp", "cuda", "omp", "tbb"} {
			files = append(files, "thrust/system/"+system+"/"+name, "thrust/system/"+system+"/detail/"+name)
		}
	}
	return files
}
