// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import "sync"

// lines are the texts of what site has returned, for those without the GIL: string
// by uint32.
var lines sync.Map

// site returns the line of the program that is calling. It needs the GIL.
func site() uint32 {
	if C.cudago_sites_on == 0 {
		return 0
	}
	line := uint32(C.cudago_site_find())
	if _, known := lines.Load(line); !known {
		lines.Store(line, siteText(line))
	}
	return line
}

// lineText returns "file:line" of what site returned, or nothing.
func lineText(site uint32) string {
	text, _ := lines.Load(site)
	line, _ := text.(string)
	return line
}

// siteText returns "file:line" of what site returned, or nothing. It needs the
// GIL, and runs no Python code.
func siteText(site uint32) string {
	var size C.Py_ssize_t
	text := C.cudago_site_utf8(C.uint32_t(site), &size)
	return C.GoStringN(text, C.int(size))
}

// cudagoGraphSite returns the line that made a node, or 0.
//
//export cudagoGraphSite
func cudagoGraphSite(id, node C.uint64_t, st *C.cudago_status) (site C.uint32_t) {
	guard(st, func() error {
		n, err := nodeOf(id, node)
		if err == nil {
			site = C.uint32_t(n.Site())
		}
		return err
	})
	return site
}

// cudagoGraphSetSite makes a node have the line of another.
//
//export cudagoGraphSetSite
func cudagoGraphSetSite(id, node, other, of C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		n, err := nodeOf(id, node)
		if err != nil {
			return err
		}
		from, err := nodeOf(other, of)
		if err == nil {
			n.SetSite(from.Site())
		}
		return err
	})
}

// cudagoExecSite is cudagoGraphSite for an executable.
//
//export cudagoExecSite
func cudagoExecSite(id, node C.uint64_t, st *C.cudago_status) (site C.uint32_t) {
	guard(st, func() error {
		x, err := execs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		if n := x.node(uint64(node)); n != nil {
			site = C.uint32_t(n.Site())
		}
		return nil
	})
	return site
}
