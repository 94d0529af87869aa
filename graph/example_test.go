// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"log"
	"time"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

// held prints when a graph lets a buffer go.
type held struct {
	name string
	*cuda.Buffer
}

func (h held) Release() {
	fmt.Println("released", h.name)
	h.Buffer.Release()
}

// operand retains b for a graph.
func operand(name string, b *cuda.Buffer) graph.Operand {
	must(b.Retain())
	return graph.Operand{Name: name, Object: b, NBytes: b.Size(), Reason: "memcpy", Retainer: held{name, b}}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A graph keeps its operands, whatever the builder does with its own references,
// until its last launch has ended.
func Example() {
	drv, err := cuda.Open(cuda.Options{Driver: "sim"})
	must(err)
	dev, err := drv.Device(0)
	must(err)
	ctx, err := dev.Context()
	must(err)
	stream, err := ctx.NewStream(cuda.StreamOptions{})
	must(err)
	pinned, err := cuda.NewPinnedMemoryResource(dev)
	must(err)
	src, err := pinned.Allocate(4, nil)
	must(err)
	dst, err := pinned.Allocate(4, nil)
	must(err)

	g, err := graph.New(ctx, graph.Options{})
	must(err)
	_, err = g.Memcpy(cuda.MemcpyParams{Dst: dst.Ptr(), Src: src.Ptr(), Size: 4}, graph.NodeOptions{
		Name: "copy", Operands: []graph.Operand{operand("src", src), operand("dst", dst)},
	})
	must(err)
	x, err := g.Instantiate(graph.ExecOptions{})
	must(err)
	must(g.Close())
	copy(src.Bytes(), "kept")
	out := dst.Bytes()
	must(src.Close())

	must(x.Launch(stream))
	must(stream.Synchronize())
	fmt.Printf("%s\n", out)
	for _, r := range x.Retained() {
		fmt.Println(r.Node, r.Operand, r.NBytes)
	}
	must(x.Close())
	graph.Reaper().Flush(time.Minute)
	must(dst.Close())
	must(stream.Close())
	must(drv.Close())
	// Output:
	// kept
	// copy src 4
	// copy dst 4
	// released src
	// released dst
}
