# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Headers of C's standard library, as far as NVRTC knows what they declare.

NVRTC has the functions and types, and no files of these names. So source that was written for nvcc
compiles.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _std(names: str) -> str:
    """Return a namespace with names that the compiler has without one."""
    return "namespace std {\n" + "".join(f"using ::{name};\n" for name in names.split()) + "}\n"


# As libcu++ defines them for NVRTC, so that both may be included. A program that includes none is
# not given them: the cache would look into all that they might include.
_TYPES = """#pragma once
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#else
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX UINT64_MAX
#endif
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
using ::size_t; using ::ptrdiff_t;
}
"""
_LIMITS = """#pragma once
#if __has_include(<cuda/std/climits>)
#include <cuda/std/climits>
#else
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#endif
"""
_FLOATS = """#pragma once
#if __has_include(<cuda/std/cfloat>)
#include <cuda/std/cfloat>
#endif
#ifndef FLT_MAX  // as with CCCL 3.0
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_EXP 128
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_EXP 1024
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
"""
# What glibc's math.h defines by default. libcu++ defines INFINITY and NAN anew, with a warning in
# the log; to include its <cuda/std/cmath> here takes the compiler longer than most kernels.
_MATH = """#pragma once
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF __int_as_float(0x7f800000)
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000)
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
""" + _std(
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 "
    "expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp "
    "lgamma llrint llround log log10 log1p log2 logb lrint lround modf nearbyint nextafter pow "
    "remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh tgamma trunc"
)
# printf, malloc, memcpy and assert need no declaration. What runs on hosts alone is not there.
_REST = "#pragma once\n" + _std("abs clock free labs llabs malloc memcpy memset printf size_t")

_TEXTS = {  # each once, whatever name includes it
    "cudago/types.h": _TYPES,
    "cudago/limits.h": _LIMITS,
    "cudago/floats.h": _FLOATS,
    "cudago/math.h": _MATH,
    "cudago/rest.h": _REST,
}
_BUILT_IN = {
    **dict.fromkeys(("cstdint", "stdint.h", "cstddef", "stddef.h"), "cudago/types.h"),
    **dict.fromkeys(("climits", "limits.h"), "cudago/limits.h"),
    **dict.fromkeys(("cfloat", "float.h"), "cudago/floats.h"),
    **dict.fromkeys(("cmath", "math.h"), "cudago/math.h"),
    **dict.fromkeys(("cassert", "assert.h", "stdbool.h"), "cudago/rest.h"),
    **dict.fromkeys(("cstdio", "stdio.h", "cstdlib", "stdlib.h"), "cudago/rest.h"),
    **dict.fromkeys(("cstring", "string.h", "ctime", "time.h"), "cudago/rest.h"),
}
_NAMED = re.compile(r'#[ \t]*include[ \t]*[<"]([a-z_]+(?:\.h)?)[>"]')
_INCLUDED = {"cuda.h": ("stdint.h", "stdlib.h")}  # by CUDA's own headers


def built_in(
    source: str, headers: Mapping[str, str], include_path: Sequence[str]
) -> dict[str, str]:
    """Return the headers of ours that a program includes, unless the user has such files."""
    found: dict[str, str] = {}
    texts = (source, *headers.values())
    named = {name for text in texts for name in _NAMED.findall(text)}
    named.update(*(more for name, more in _INCLUDED.items() if name in named))
    for name in sorted(named & _BUILT_IN.keys()):
        if name in headers or any((Path(d) / name).exists() for d in include_path):
            continue
        common = _BUILT_IN[name]
        found[name] = f"#include <{common}>\n"
        found[common] = _TEXTS[common]
    return found
