// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/cudago/cudago/cuda"
)

// dotColors are the fill colours of the kinds of node.
var dotColors = map[cuda.NodeType]string{
	cuda.KernelNode: "#cde8c9", cuda.MemcpyNode: "#cfe2f3", cuda.MemsetNode: "#d9d2e9",
	cuda.HostNode: "#fce5cd", cuda.EmptyNode: "#eeeeee", cuda.ChildGraphNode: "#fff2cc",
	cuda.ConditionalNode: "#f4cccc", cuda.BatchMemOpNode: "#ead1dc", cuda.AllocNode: "#d0e0e3", cuda.FreeNode: "#d0e0e3",
	cuda.SemaphoreSignalNode: "#ead1dc", cuda.SemaphoreWaitNode: "#ead1dc",
}

// DOT returns the graph in Graphviz's language: each node with its name, kind,
// sizes and what it keeps alive, and with its origin as a tooltip; embedded
// graphs as clusters. origin says in words what a [Node.Site] is, or nothing; it
// is called while the graph is locked.
func (g *Graph) DOT(origin func(site uint32) string) string {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	var b strings.Builder
	b.WriteString("digraph cudago {\n" +
		"  rankdir=TB;\n" +
		"  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\", fontsize=10];\n")
	w := dotWriter{&b, origin}
	w.write(g, "n", "  ")
	b.WriteString("}\n")
	return b.String()
}

// A dotWriter writes graphs of one hierarchy.
type dotWriter struct {
	b      *strings.Builder
	origin func(site uint32) string
}

// write writes the nodes and edges of g. id starts the names of its nodes, which
// are numbered: the users' names need not be valid in DOT.
//
// Preconditions: g.h.mu is held.
func (w dotWriter) write(g *Graph, id, indent string) {
	b := w.b
	ids := make(map[*Node]string, len(g.all()))
	for i, n := range g.all() {
		ids[n] = fmt.Sprintf("%s%d", id, i)
		fmt.Fprintf(b, "%s%s [%s];\n", indent, ids[n], w.attributes(n))
		count := 0
		n.eachInner("", func(prefix string, inner *Graph) {
			id := fmt.Sprintf("%s_%d", ids[n], count)
			count++
			fmt.Fprintf(b, "%ssubgraph cluster_%s {\n%s  label=%s;\n", indent, id, indent, dotQuote(strings.TrimSuffix(prefix, "/")))
			w.write(inner, id+"_", indent+"  ")
			b.WriteString(indent + "}\n")
			if n.bodies != nil && len(inner.all()) > 0 {
				fmt.Fprintf(b, "%s%s -> %s_0 [style=dashed];\n", indent, ids[n], id)
			}
		})
	}
	for _, n := range g.all() {
		of := n.edges()
		for i, d := range of.deps {
			how := ""
			if data := of.dataAt(i); data != (cuda.EdgeData{}) {
				how = fmt.Sprintf(" [style=dotted, label=%s]", dotQuote(data.String()))
			}
			fmt.Fprintf(b, "%s%s -> %s%s;\n", indent, ids[d], ids[n], how)
		}
	}
}

func (w dotWriter) attributes(n *Node) string {
	color := dotColors[n.kind]
	if color == "" {
		color = "#ffffff"
	}
	text := fmt.Sprintf("label=%s, fillcolor=%s, class=%s", dotQuote(n.label()), dotQuote(color), dotQuote(n.kind.String()))
	if origin := w.origin(n.Site()); origin != "" {
		text += ", tooltip=" + dotQuote(origin)
	}
	return text
}

// label is the text in a node's box, one line per fact.
func (n *Node) label() string {
	lines := []string{n.name, n.kind.String()}
	switch p := n.params.(type) {
	case cuda.MemcpyParams:
		lines = append(lines, fmt.Sprintf("%d bytes", p.Size))
	case cuda.MemsetParams:
		lines = append(lines, fmt.Sprintf("%d bytes of %#x", p.Count*uint64(p.ElementSize), p.Value))
	case cuda.MemOpParams:
		lines = append(lines, p.String())
	case cuda.SemaphoreParams:
		lines = append(lines, p.String())
	case cuda.KernelNodeParams:
		lines = append(lines, kernelLabel(p))
	case ConditionalParams:
		lines = append(lines, p.Type.String())
	case AllocParams:
		lines = append(lines, fmt.Sprintf("%d bytes", p.Size))
	}
	for _, r := range n.bundle.describe(nil, "") {
		line := "keeps " + r.Operand
		if r.NBytes > 0 {
			line += fmt.Sprintf(" (%d bytes)", r.NBytes)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// dotQuote makes a quoted string of DOT, in which only the quote ends it and a
// backslash starts an escape: "\n" is a line break there, as it is here. What
// cannot be printed is replaced: DOT has no escape for it, terminals obey it, and
// the text has its own lines.
func dotQuote(s string) string {
	return `"` + dotEscapes.Replace(strings.Map(dotPrintable, s)) + `"`
}

func dotPrintable(r rune) rune {
	switch {
	case r == '\n' || unicode.IsPrint(r):
		return r
	case r == '\r' || r == '\t':
		return ' '
	}
	return unicode.ReplacementChar
}
