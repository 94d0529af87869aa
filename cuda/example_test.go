// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/cudago/cudago/cuda"
)

const increment = `.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 p, .param .u32 by)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [by];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd2, %r2, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r3, [%rd3];
	add.s32 %r4, %r3, %r1;
	st.global.u32 [%rd3], %r4;
	ret;
}
`

// openExample opens the simulated driver, for the examples below.
func openExample() (*cuda.Driver, *cuda.Device, *cuda.Context) {
	drv, err := cuda.Open(cuda.Options{Driver: "sim"})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := drv.Device(0)
	if err != nil {
		log.Fatal(err)
	}
	ctx, err := dev.Context()
	if err != nil {
		log.Fatal(err)
	}
	return drv, dev, ctx
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func Example() {
	drv, dev, ctx := openExample()
	defer drv.Close()
	s := must(ctx.NewStream(cuda.StreamOptions{Name: "main"}))
	defer s.Close()

	buf := must(must(dev.DefaultMemoryResource()).Allocate(4*4, s))
	defer buf.Close()
	if err := buf.Fill(10, 4, s); err != nil {
		log.Fatal(err)
	}

	code := must(must(drv.NewProgram(increment, cuda.PTX, cuda.ProgramOptions{})).Compile(dev, ""))
	defer code.Close()
	k := must(code.Kernel(dev, "increment"))
	defer k.Close()
	fmt.Println(k.Signature())

	cfg := cuda.LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{4}}
	if err := cuda.Launch(s, cfg, k, buf, 5); err != nil {
		log.Fatal(err)
	}
	out := make([]byte, 16)
	if err := buf.CopyToHost(out, s); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output:
	// (u64, u32)
	// [15 0 0 0 15 0 0 0 15 0 0 0 15 0 0 0]
}

func ExampleStream_Wait() {
	drv, _, ctx := openExample()
	defer drv.Close()
	producer := must(ctx.NewStream(cuda.StreamOptions{}))
	defer producer.Close()
	consumer := must(ctx.NewStream(cuda.StreamOptions{}))
	defer consumer.Close()
	ready := must(ctx.NewEvent(cuda.EventOptions{}))
	defer ready.Close()

	// … work that produces, then:
	if err := producer.Record(ready); err != nil {
		log.Fatal(err)
	}
	if err := consumer.Wait(ready); err != nil {
		log.Fatal(err)
	}
	// … work that consumes, and runs after it.
	fmt.Println(consumer.Synchronize())
	// Output: <nil>
}

func ExampleBuffer_Retain() {
	drv, dev, ctx := openExample()
	defer drv.Close()
	s := must(ctx.NewStream(cuda.StreamOptions{}))
	defer s.Close()
	buf := must(must(dev.DefaultMemoryResource()).Allocate(256, s))
	if err := buf.Retain(); err != nil { // for something that outlives the caller
		log.Fatal(err)
	}
	buf.Close()
	fmt.Println(drv.Live()["Allocation"])
	buf.Release()
	fmt.Println(drv.Live()["Allocation"])
	// Output:
	// 1
	// 0
}

func ExampleError() {
	drv, dev, ctx := openExample()
	defer drv.Close()
	s := must(ctx.NewStream(cuda.StreamOptions{}))
	defer s.Close()
	_, err := must(dev.DefaultMemoryResource()).Allocate(1<<40, s)
	fmt.Println(err)
	fmt.Println(errors.Is(err, cuda.ErrorOutOfMemory))
	// Output:
	// cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY: out of memory (1099511627776 bytes on device 0)
	// true
}

func ExampleLaunchConfig_Validate() {
	drv, dev, _ := openExample()
	defer drv.Close()
	cfg := cuda.LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{2048}}
	fmt.Println(cfg.Validate(dev))
	// Output: block must be 1 to 1024 threads, got 2048
}
