// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// transfer is how a load or store moves one element between memory and a
// register row.
type transfer struct {
	name   string // part of the function's name
	mem    string // Go type in memory
	row    string // register row
	size   int
	extend string // load: conversion of the value in memory
	types  []string
	class  string
}

// loads and stores list the combinations of memory type and register class.
// Sources of stores may be wider than the type: their low bits are stored.
func transfers(store bool) []transfer {
	list := []transfer{
		{"U8", "uint8", "U32", 1, "uint32(%s)", []string{"U8"}, "register.Class16"},
		{"U8", "uint8", "U32", 1, "uint32(%s)", []string{"U8"}, "register.Class32"},
		{"U8to64", "uint8", "U64", 1, "uint64(%s)", []string{"U8"}, "register.Class64"},
		{"U16", "uint16", "U32", 2, "uint32(%s)", []string{"U16", "S16"}, "register.Class16"},
		{"U16", "uint16", "U32", 2, "uint32(%s)", []string{"U16"}, "register.Class32"},
		{"U16to64", "uint16", "U64", 2, "uint64(%s)", []string{"U16"}, "register.Class64"},
		{"U32", "uint32", "U32", 4, "%s", []string{"U32", "S32"}, "register.Class32"},
		{"U32to64", "uint32", "U64", 4, "uint64(%s)", []string{"U32"}, "register.Class64"},
		{"U64", "uint64", "U64", 8, "%s", []string{"U64", "S64"}, "register.Class64"},
	}
	if store {
		for i := range list {
			list[i].types = list[i].types[:1]
		}
		return list
	}
	return append(list,
		transfer{"S8to16", "int8", "U32", 1, "uint32(uint16(%s))", []string{"S8"}, "register.Class16"},
		transfer{"S8", "int8", "U32", 1, "uint32(%s)", []string{"S8"}, "register.Class32"},
		transfer{"S8to64", "int8", "U64", 1, "uint64(%s)", []string{"S8"}, "register.Class64"},
		transfer{"S16", "int16", "U32", 2, "uint32(%s)", []string{"S16"}, "register.Class32"},
		transfer{"S16to64", "int16", "U64", 2, "uint64(%s)", []string{"S16"}, "register.Class64"},
		transfer{"S32to64", "int32", "U64", 4, "uint64(%s)", []string{"S32"}, "register.Class64"},
	)
}

// memoryOps writes ld and st of one element for each space, address width and
// type. A range is resolved once and kept by the instruction; what lies
// outside it, is freed or misaligned goes through miss, which finds the new
// range or reports the fault.
func memoryOps(table *bytes.Buffer) string {
	var b strings.Builder
	for _, store := range []bool{false, true} {
		for _, space := range []string{"Global", "Shared", "Local", "Generic"} {
			for _, wide := range []bool{true, false} {
				if !wide && (space == "Global" || space == "Generic") {
					continue
				}
				seen := map[string]bool{}
				for _, t := range transfers(store) {
					name := accessName(store, space, wide, t)
					if !seen[name] {
						seen[name] = true
						b.WriteString(access(name, store, space, wide, t))
					}
					accessEntries(table, name, store, space, wide, t)
				}
			}
		}
	}
	return b.String()
}

func accessName(store bool, space string, wide bool, t transfer) string {
	verb := "ld"
	if store {
		verb = "st"
	}
	if wide {
		return verb + space + t.name
	}
	return verb + space + "32" + t.name
}

func accessEntries(table *bytes.Buffer, name string, store bool, space string, wide bool, t transfer) {
	addr, opName := "register.Class32", "Ld"
	if wide {
		addr = "register.Class64"
	}
	src := addr
	if store {
		opName, src = "St", addr+", "+t.class
	}
	for _, typ := range t.types {
		dst := t.class
		if store {
			dst = "register.ClassNone"
		}
		fmt.Fprintf(table, "{opKey{op: ptxir.Op%s, typ: ptxir.%s, space: ptxir.Space%s, dst: %s, src: %s}, %s, %s, []register.Class{%s}},\n",
			opName, typ, space, t.class, addr, name, dst, src)
	}
}

// access writes one function. The site's fields are kept in variables and
// fetched again only after a miss.
func access(name string, store bool, space string, wide bool, t transfer) string {
	var b strings.Builder
	addrRow := "U32"
	if wide {
		addrRow = "U64"
	}
	row, operand := "d", "D"
	if store {
		row, operand = "b", "B"
	}
	fmt.Fprintf(&b, "//go:norace\nfunc %s(w *Warp, in *Inst, m uint32) {\n", name)
	fmt.Fprintf(&b, "a, %s := w.%s(in.A), w.%s(in.%s)\n", row, addrRow, t.row, operand)
	b.WriteString("s := w.site(in.Site)\n")
	host := "unsafe.Add(host, o)"
	if space == "Local" || space == "Generic" {
		b.WriteString("lane0 := uint64(w.Index) * register.Lanes\n")
		host = "unsafe.Add(host, o+(lane0+uint64(l))*stride)"
	}
	move := fmt.Sprintf("d[l] = "+t.extend, "*(*"+t.mem+")("+host+")")
	if store {
		move = fmt.Sprintf("*(*%s)(%s) = %s(b[l])", t.mem, host, t.mem)
	}
	check := "o >= span"
	if t.size > 1 {
		// A misaligned address is outside every range as far as the loop cares.
		check = fmt.Sprintf("o >= span || o&%d != 0", t.size-1)
	}
	// Sums of 32-bit addresses wrap around: compilers start below an array's
	// beginning, and a constant offset leads back.
	addr, based, fetch := "uint64(a[l]+uint32(in.Imm))", "uint64(a[l]+base)", "base, span, host := uint32(in.Imm)-uint32(s.Base), s.Span, s.Host\n"
	if wide {
		addr, based, fetch = "a[l]+in.Imm", "a[l]+base", "base, span, host := in.Imm-s.Base, s.Span, s.Host\n"
	}
	// Host ranges may start anywhere, so that alignment is judged by address
	// where the space has them, by offset elsewhere.
	if t.size > 1 && (space == "Global" || space == "Generic") {
		check = fmt.Sprintf("o >= span || (%s)&%d != 0", addr, t.size-1)
	}
	// The loops contain no call: around one, Go would keep everything on the
	// stack. A miss leaves the loop and enters it again at the same lane.
	if stride := "stride := s.stride\n"; space == "Local" || space == "Generic" {
		fetch += stride
	}
	miss := fmt.Sprintf("w.miss(in, s, %s, l, %d)\n", addr, t.size)
	step := fmt.Sprintf("o := %s\nif %s {\nbreak\n}\n%s\n", based, check, move)
	b.WriteString("if m == register.Full {\nfor l := 0; ; {\n" + fetch + "for ; l < register.Lanes; l++ {\n" + step + "}\nif l == register.Lanes {\nreturn\n}\n" + miss + "}\n}\n")
	b.WriteString("for {\n" + fetch + "for m != 0 {\nl := bits.TrailingZeros32(m) & 31\n" + step + "m &= m - 1\n}\nif m == 0 {\nreturn\n}\n" +
		"l := bits.TrailingZeros32(m) & 31\n" + miss + "}\n}\n\n")
	return b.String()
}
