// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// bits have a sign in every width, and lose something wherever one is too small.
const bits uint64 = 0xf8e7d6c5b4a39281

// number is a value of a type that keeps all the bits that it can: those of the
// i-th parameter, or result.
func number(t reflect.Type, i int) reflect.Value {
	v := reflect.New(t).Elem()
	switch pattern := bits + uint64(i); t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(int64(int32(pattern)))
	case reflect.Float32:
		v.SetFloat(float64(float32(pattern)))
	default:
		v.SetUint(pattern & (1<<(8*t.Size()-1)<<1 - 1))
	}
	return v
}

// TestNumbersPass calls each method whose stand-in is generated, and requires
// all bits of its arguments there, in order, and all of its results here.
func TestNumbersPass(t *testing.T) {
	s, d := openStandin(t)
	calls := regexp.MustCompile(`note\("(\w+)`).FindAllStringSubmatch(standinCalls, -1)
	require.NotEmpty(t, calls)
	for _, c := range calls {
		m := reflect.ValueOf(d).MethodByName("C" + c[1][1:])
		line, args := c[1], []reflect.Value{}
		for i := range m.Type().NumIn() {
			a := number(m.Type().In(i), i)
			args = append(args, a)
			switch {
			case a.Kind() == reflect.Bool:
				line += " 1"
			case a.CanInt():
				line += fmt.Sprintf(" %d", a.Int())
			default:
				line += fmt.Sprintf(" %d", a.Uint())
			}
		}
		results := m.Call(args)
		require.Equal(t, []string{line}, s.calls(t))
		last := len(results) - 1
		require.Equal(t, driver.CUDA_SUCCESS, results[last].Interface(), c[1])
		for i, r := range results[:last] {
			require.Equal(t, number(r.Type(), i).Interface(), r.Interface(), "%s: result %d", c[1], i)
		}
	}
}
