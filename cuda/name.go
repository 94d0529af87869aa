// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/cxxname"
	"github.com/cudago/cudago/internal/ptx"
)

// ReadableText replaces the symbols in a text by what C++ calls them.
func ReadableText(text string) string { return cxxname.ReadableText(text) }

// PlainName returns what C++ calls a kernel or variable, without template
// arguments and parameters. name is a symbol or any spelling.
func PlainName(name string) string { return cxxname.Plain(name) }

// Symbol returns the symbol that a kernel's or variable's name stands for: that
// of a name expression, one that was found for the name before, or name itself.
func (o *ObjectCode) Symbol(name string) string {
	if symbol, ok := o.names[name]; ok {
		return symbol
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if symbol, ok := o.found[name]; ok {
		return symbol
	}
	return name
}

// find looks for a name that is no symbol, among the name expressions and what
// C++ calls the symbols. It returns more than one if functions are overloaded.
func (o *ObjectCode) find(name string, symbols []string) []string {
	var found []string
	for expression, symbol := range o.names {
		if slices.Contains(symbols, symbol) && cxxname.Same(expression, name) && !slices.Contains(found, symbol) {
			found = append(found, symbol)
		}
	}
	if len(found) == 0 {
		found = cxxname.Find(symbols, name)
	}
	if len(found) == 1 {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.found == nil {
			o.found = make(map[string]string)
		}
		o.found[name] = found[0]
	}
	return found
}

// readable returns what C++ calls the symbols, sorted.
func readable(symbols []string) []string {
	names := make([]string, len(symbols))
	for i, symbol := range symbols {
		names[i] = cxxname.Readable(symbol)
	}
	slices.Sort(names)
	return names
}

// Names returns the names of the kernels, as far as they are known without
// loading the code: name expressions, and what C++ calls the entries of PTX.
func (o *ObjectCode) Names() []string {
	var names []string
	lowered := make(map[string]bool)
	entries := o.entries()
	for expression, symbol := range o.names {
		if _, found := entries[symbol]; found || o.PTX == "" { // others are of variables
			names = append(names, expression)
			lowered[symbol] = true
		}
	}
	for symbol := range entries {
		if !lowered[symbol] {
			names = append(names, cxxname.Readable(symbol))
		}
	}
	slices.Sort(names)
	return names
}

// variables returns the symbols of the variables in device memory, as far as they
// are known: from PTX.
func (o *ObjectCode) variables() []string {
	symbols, err := ptx.Variables(o.PTX)
	if err != nil {
		return nil
	}
	return symbols
}

// Variables returns the names of the variables in device memory, as far as they
// are known: from PTX. What only strings and tables of the compiler have is left
// out.
func (o *ObjectCode) Variables() []string {
	expressions := make(map[string]string)
	for expression, symbol := range o.names {
		expressions[symbol] = expression
	}
	var names []string
	for _, symbol := range o.variables() {
		name, found := expressions[symbol]
		if !found {
			name = cxxname.Readable(symbol)
		}
		if !strings.HasPrefix(name, "$") {
			names = append(names, name)
		}
	}
	return names
}

// kernelSymbols returns the symbols of the kernels: from PTX, or from the
// driver, which may not list them.
//
// Preconditions: the context is current.
func (m *Module) kernelSymbols() []string {
	if entries := m.code.entries(); len(entries) > 0 {
		return slices.Collect(maps.Keys(entries))
	}
	names, r := m.ctx.drv.api.CuModuleFunctionNames(m.h)
	if r != driver.CUDA_SUCCESS {
		return nil
	}
	return names
}

// lookUp asks the driver for what has a name: by the symbol that the name stands
// for, then by the one of which it is a spelling. The error says what there is.
//
// Preconditions: the context is current.
func lookUp[T any](
	m *Module, op, noun, name string, symbols func() []string, ask func(symbol string) (T, driver.CUresult),
) (got T, symbol string, err error) {
	symbol = m.code.Symbol(name)
	got, r := ask(symbol)
	if symbol == "" && r == driver.CUDA_ERROR_INVALID_VALUE { // NVIDIA's driver says so of the empty name
		r = driver.CUDA_ERROR_NOT_FOUND
	}
	if r != driver.CUDA_ERROR_NOT_FOUND {
		return got, symbol, m.ctx.failName(op, r, name, m.loadOutput(symbol))
	}
	found := m.code.find(name, symbols())
	if len(found) == 1 && found[0] != symbol {
		got, r = ask(found[0])
		return got, found[0], m.ctx.failName(op, r, name, m.loadOutput(found[0]))
	}
	if len(found) > 1 {
		detail := fmt.Sprintf("%d %ss are called %q; choose one by its parameters: %s", len(found), noun, name, list(readable(found)))
		return got, "", m.ctx.fail(op, r, detail)
	}
	return got, "", m.ctx.fail(op, r, fmt.Sprintf("no %s %q; %s", noun, name, m.listNames()))
}

func (c *Context) failName(op string, r driver.CUresult, name, output string) error {
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	return c.fail(op, r, strconv.Quote(name)+output)
}
