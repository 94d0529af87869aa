// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIncludes(t *testing.T) {
	a, b := include{"a.h", true}, include{"b.h", false}
	for text, want := range map[string][]include{
		"":                                                              nil,
		"#include \"a.h\"\n#include <b.h>":                              {a, b},
		"  #\tinclude\t<b.h> // and \"a.h\"":                            {b},
		"# /* x */ include /**/ \"a.h\"":                                {a},
		"%:include \"a.h\"":                                             {a},
		"#inc\\\nlude \"a.h\"":                                          {a},
		"#include\\\r\n <b.h>":                                          {b},
		"#include_next <b.h>":                                           {b},
		"#if 0\n#include <b.h>\n#endif":                                 {b},
		"/* \n#include MACRO */":                                        nil,
		"// the first #include of this":                                 nil,
		"const char *s = \"#include MACRO\";":                           nil,
		"char c = '\"';\n#include <b.h>":                                {b},
		"int i = 1'000 + '\"' + \"/*\";\n#include <b.h>":                {b},
		"#error isn't /* it\n#include <b.h>":                            {b},
		"const char *s = R\"x(\n#include MACRO\n)\" )x\";":              nil,
		"#if __has_include(<b.h>) || __has_include(\"a.h\")\n#endif":    {b, a},
		"#ifdef __has_include\n#endif":                                  nil,
		"#if defined(__has_include) && __has_include(<b.h>)\n#endif":    {b},
		"# define _X_HAS_INCLUDE(_X) __has_include(_X)\n#include <b.h>": {b},
		"#define HAS_INCLUDE( x ) 0\r\n#include <b.h>":                  {b},
		"#if A && X_HAS_INCLUDE(<b.h>)\n#undef X_HAS_INCLUDE\n#endif":   {b},
		"int included = 1; // include":                                  nil,
		"#include <b.h>\n#include <b.h>":                                {b},
		"#define A /* ( */ \"\\\"\" /* */\n#include \"a.h\"":            {a},
	} {
		list, isKnown := includes(text)
		require.True(t, isKnown, text)
		require.Equal(t, want, list, text)
	}
}

func TestIncludesOfThrust(t *testing.T) {
	for text, want := range map[string]string{
		"#include __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(copy_if.h)": "thrust/system/tbb/detail/copy_if.h",
		"#include __THRUST_DEVICE_SYSTEM_ALGORITH_HEADER_INCLUDE(vector.h) // x":  "thrust/system/cuda/vector.h",
		"#  include __THRUST_DEVICE_SYSTEM_COPY_IF_HEADER\r":                      "thrust/system/cuda/detail/copy_if.h",
		"#include __THRUST_HOST_SYSTEM_TAG_HEADER":                                "thrust/system/cpp/detail/execution_policy.h",
		"#include __THRUST_HOST_SYSTEM_MEMORY_HEADER":                             "thrust/system/cpp/memory_resource.h",
		"#include THRUST_MR_STD_MR_HEADER":                                        "memory_resource",
	} {
		list, isKnown := includes(text + "\n#include <b.h>")
		require.True(t, isKnown, text)
		require.Contains(t, list, include{want, false})
		require.Contains(t, list, include{"b.h", false}, text)
	}
	for _, text := range []string{
		"#include __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(MACRO)",
		"#include __THRUST_HOST_SYSTEM_COPY_HEADER(x)",
		"#include X__THRUST_HOST_SYSTEM_COPY_HEADER",
	} {
		_, isKnown := includes(text)
		require.False(t, isKnown, text)
	}
}

func TestIncludesThatOnlyTheCompilerKnows(t *testing.T) {
	for _, text := range []string{
		"#include MACRO",
		"#include MACRO(a.h)",
		"#include",
		"#include \"a.h\n\"",
		"#if __has_include(MACRO)\n#endif",
		"#define HAS(x) __has_include(x)",
		"#define HAS __has_include",
		"#define X_HAS_INCLUDE(x) __has_include(y)",
		"#define X_HAS_INCLUDE(x) (__has_include(x) && A)",
		"#define X_HAS_INCLUDE __has_include",
		"#define HAS(x) X_HAS_INCLUDE(x)",
		"#define HAS X_HAS_INCLUDE",
		"#if X_HAS_INCLUDE(MACRO)\n#endif",
		"??=include \"a.h\"",
		"#define A ??/\n#include <a.h>",
		"const char *s = __TIME__;",
		"const char *s = __DATE__ __TIMESTAMP__;",
		"import a;",
		"export import a;",
		"auto s = R\"(\\\n)\"; /*",
		"auto s = R\"(",
	} {
		_, isKnown := includes(text)
		require.False(t, isKnown, text)
	}
}

// Whatever the text is, the scanner ends.
func FuzzIncludes(f *testing.F) {
	for _, text := range []string{"#include <a>", "R\"(", "'", "/*", "#", "%:", "#include \"", "\\\n", "0'", "__has_include("} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, isKnown := includes(text)
		if !isKnown {
			return
		}
		// A directive in a line of its own, after what ends any comment or string.
		more, isKnown := includes(text + "\n*/ \n)\"\n\n#include <last.h>\n")
		if isKnown {
			require.GreaterOrEqual(t, len(more), len(list))
		}
	})
}
