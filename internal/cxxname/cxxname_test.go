// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// symbols are NVRTC's, of what stands beside them.
var symbols = []string{
	"saxpy",
	"_ZN2ns1fIfLi4EEEvPT_",           // ns::f<float, 4>(float*)
	"_ZN2ns1gEPf",                    // ns::g(float*)
	"_ZN2ns1gEPi",                    // ns::g(int*)
	"_Z1hIjLb1EL4Mode1ELh97EEvPKT_m", // h<unsigned int, true, Mode::b, 'a'>(const unsigned int*, unsigned long)
	"_Z1vIJEEvDpT_",                  // v<>()
	"_Z1vIJifEEvDpT_",                // v<int, float>(int, float)
	"_Z2stPi",                        // static
	"_ZN39_GLOBAL__N__00000000_7_program_fbfbc2532anEPi",
	"_ZN2ns1wE",            // a variable
	"_Z4moveI6__halfEvPT_", // move<__half>(__half*)
	"_Z4copyIN4cuda3std3__47complexIfEEEvPKT_", // copy<cuda::std::complex<float>>(const cuda::std::complex<float>*)
	"_Z4pairI1AIiEEvT_",                        // pair<A<int>>(A<int>)
	"_Z2fpIXadL_Z2fniEEEvPi",                   // fp<&fn(int)>(int*)
	"_Z2fpIXadL_Z1gIiET_S1_EEEvPi",             // fp<&int g<int>(int)>(int*)
	"_Z2mpIXadL_ZNK2ns1A1mEiEELi2EEvPi",        // mp<&ns::A::m(int) const, 2>(int*)
	"_Z2vpIXadL_Z3varEEEvPi",                   // vp<&var>(int*)
	"_Z2tyIFiiEEvPi",                           // ty<int (int)>(int*)
}

func TestFind(t *testing.T) {
	tests := map[string][]string{
		symbols[1]: {
			"ns::f<float, 4>", "ns::f<float,4>", " ns :: f < float , 4 > ", "::ns::f<float,4u>", "ns::f<float,0x4>", "ns::f<float,(int)4>",
			"void ns::f<float, 4>(float*)", "ns::f<float, 4>(float *)", "__global__ void ns::f<float,4>(float*)", "&ns::f<float, 4>", symbols[1],
		},
		symbols[2]: {"ns::g(float*)", "void ns::g(float *)"},
		symbols[3]: {"ns::g(signed*)", "ns::g(std::int32_t *)"},
		symbols[4]: {
			"h<unsigned int, true, (Mode)1, 97>", "h<unsigned,true,(Mode)1,'a'>", "h<uint32_t,1,(Mode)1,97>", "h<std::uint32_t, true, (enum Mode)1, (unsigned char)97>",
			"h<unsigned, true, (Mode)1, 'a'>(const unsigned*, size_t)", "h<unsigned, true, (Mode)1, 'a'>(unsigned const *, long unsigned int)",
			"h<unsigned, true, (Mode)1, 'a'>(const uint*, std::size_t)",
			"h<unsigned, true, Mode(1), 'a'>", "h<unsigned, true, static_cast<Mode>(1), char(97)>", "h<unsigned,true,static_cast<enum Mode>( 1 ),'a'>",
		},
		symbols[5]:  {"v<>", "v < >", "void v<>()", "v<>(void)"},
		symbols[6]:  {"v<int,float>", "v<int, float>(int, float)"},
		symbols[7]:  {"st", "st(int*)"},
		symbols[8]:  {"an", "(anonymous namespace)::an", "an(int*)"},
		symbols[9]:  {"ns::w", "&ns::w", "::ns::w"},
		symbols[10]: {"move<half>", "move<__half>", "move<struct __half>(half*)"},
		symbols[11]: {"copy<cuda::std::complex<float>>", "copy<cuda::std::complex<float> >(const cuda::std::complex<float>*)", "copy<cuda::std::__4::complex<float>>"},
		symbols[12]: {"pair<A<int>>", "pair<A<int> >", "pair<struct A<signed int>>"},
		symbols[13]: {"fp<fn>", "fp<&fn>", "fp<&fn(int)>", "fp<&::fn>(int*)", "void fp<fn>(int *)", "fp<&int fn(signed)>"},
		symbols[14]: {"fp<g<int>>", "fp<&g<int>>", "fp<&g<signed>(int)>", "fp<&int g<int>(int)>"},
		symbols[15]: {"mp<&ns::A::m, 2>", "mp<&ns::A::m(int) const, 2>", "mp<ns::A::m,2u>"},
		symbols[16]: {"vp<&var>", "vp<var>"},
		symbols[17]: {"ty<int (int)>", "ty<int(signed)>"},
		symbols[0]:  {"saxpy"},
	}
	for want, names := range tests {
		for _, name := range names {
			require.Equal(t, []string{want}, Find(symbols, name), name)
		}
	}
}

func TestFindOverloads(t *testing.T) {
	require.Equal(t, []string{"_ZN2ns1gEPf", "_ZN2ns1gEPi"}, Find(symbols, "ns::g"))
}

// A function whose address is a template argument may be written without its
// parameters while they do not matter.
func TestFindOverloadedArgument(t *testing.T) {
	overloaded := []string{"_Z3fpfIXadL_Z2fnfEEEvPi", "_Z3fpfIXadL_Z2fniEEEvPi"} // fpf<&fn(float)>, fpf<&fn(int)>
	require.Equal(t, overloaded, Find(overloaded, "fpf<fn>"))
	require.Equal(t, overloaded[:1], Find(overloaded, "fpf<&fn(float)>"))
	require.Equal(t, overloaded[1:], Find(overloaded, "fpf<fn(int)>"))
}

func TestFindNothing(t *testing.T) {
	for _, name := range []string{
		"", " ", "::", "&", "f<float, 4>", "ns::f", "ns::f<float>", "ns::f<float, 5>", "ns::f<double, 4>", "ns::f<float, 4>(double*)",
		"ns::g(const float*)", "v<float,int>", "v", "pair<A<unsigned>>", "h<unsigned, false, (Mode)1, 'a'>", "(", "<", "f<", "ns::f<float, 4", "'", "ns::f<float,4>>", "const", "unsigned",
		"fp<&fn(float)>", "fp<&g>", "fp<&", "fp<&(", "fp<&>(", "fp<&)>", "ty<int>", "mp<&m, 2>", "h<unsigned, true, Mode(2), 97>", "h<unsigned, true, Mode(-1), 97>", "f<T(", "f<T()>", "f<static_cast<>(1)>",
	} {
		require.Empty(t, Find(symbols, name), name)
	}
}

// What is listed in a message must be found again.
func TestReadable(t *testing.T) {
	require.Equal(t, "ns::f<float, 4>(float*)", Readable("_ZN2ns1fIfLi4EEEvPT_"))
	require.Equal(t, "saxpy", Readable("saxpy"))
	require.Equal(t, "_Zebra", Readable("_Zebra"), "no mangled name")
	for _, symbol := range symbols {
		require.Equal(t, []string{symbol}, Find(symbols, Readable(symbol)), Readable(symbol))
	}
}

func TestPlain(t *testing.T) {
	for name, want := range map[string]string{
		"saxpy": "saxpy", "_ZN2ns1fIfLi4EEEvPT_": "ns::f", "void ns::f<A<int>, 4>(float*)": "ns::f", "f < int >": "f", "an": "an",
		"_ZN39_GLOBAL__N__00000000_7_program_fbfbc2532anEPi": "an", "": "",
	} {
		require.Equal(t, want, Plain(name), name)
	}
}

func TestReadableText(t *testing.T) {
	require.Equal(t, "in ns::g(float*)+16, line 3", ReadableText("in _ZN2ns1gEPf+16, line 3"))
	require.Equal(t, "through param_0 of ns::g(float*). And", ReadableText("through _ZN2ns1gEPf_param_0 of _ZN2ns1gEPf. And"))
	require.Equal(t, "of saxpy_param_0, _Z_param_0.", ReadableText("of saxpy_param_0, _Z_param_0."))
	require.Equal(t, "no symbol: a_Zb é", ReadableText("no symbol: a_Zb é"))
}

func TestSame(t *testing.T) {
	require.True(t, Same("f<const float*, 4>", "f<float const *,4>"))
	require.True(t, Same("f<const unsigned long long>", "f<unsigned long long const>"))
	require.True(t, Same("f<const A<int>::B *>", "f<A<int>::B const*>"))
	require.False(t, Same("f<float* const>", "f<const float*>"))
	require.False(t, Same("f", "f()"))
}

// Names of any length are names: reading them takes no more stack than there is.
func TestLong(t *testing.T) {
	const n = 2_000_000
	symbol := "_Z1f" + strings.Repeat("P", n) + "i"
	spelled := strings.Repeat("const f<", n/10)
	require.Equal(t, symbol, Readable(symbol))
	require.Equal(t, "in "+symbol+".", ReadableText("in "+symbol+"."))
	require.Equal(t, symbol, Plain(symbol))
	require.Equal(t, []string{symbol}, Find([]string{"_Z1fPi", symbol}, symbol))
	require.Empty(t, Find([]string{symbol}, "f"))
	require.Empty(t, Find([]string{"_Z1fPi", symbol}, spelled))
	require.False(t, Same(spelled, "f"))
	require.True(t, Same(spelled, spelled))
	require.Equal(t, "constf", Plain(spelled))
}

func FuzzFind(f *testing.F) {
	for _, symbol := range symbols {
		f.Add(symbol, Readable(symbol))
	}
	f.Fuzz(func(_ *testing.T, symbol, name string) {
		Find([]string{symbol}, name)
		Plain(symbol)
		ReadableText(symbol)
	})
}
