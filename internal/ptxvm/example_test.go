// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

func Example() {
	ir, err := ptxir.Load("double.ptx", `
.version 7.8
.target sm_75
.address_size 64
.visible .entry twice(.param .u64 p)
{
	.reg .b64 %a, %o;
	.reg .b32 %t, %v;
	ld.param.u64 %a, [p];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %o, %t, 4;
	add.s64 %a, %a, %o;
	ld.global.u32 %v, [%a];
	shl.b32 %v, %v, 1;
	st.global.u32 [%a], %v;
	ret;
}`)
	if err != nil {
		log.Fatal(err)
	}
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, err := d.Load(ir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Unload()
	k, err := m.Kernel("twice")
	if err != nil {
		log.Fatal(err)
	}
	addr, err := d.Memory().Alloc(16, "the example")
	if err != nil {
		log.Fatal(err)
	}
	if err := d.Memory().Write(addr, []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}); err != nil {
		log.Fatal(err)
	}
	params := binary.LittleEndian.AppendUint64(nil, addr)
	launch := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{4, 1, 1}, Params: params}
	if err := k.Launch(&launch); err != nil {
		log.Fatal(err)
	}
	out := make([]byte, 16)
	if err := d.Memory().Read(out, addr); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)

	launch.Block[0] = 5 // one thread too many
	err = k.Launch(&launch)
	var f *fault.Fault
	if errors.As(err, &f) {
		fmt.Println(f.Kind, "in thread", f.Thread)
	}
	// Output:
	// [2 0 0 0 4 0 0 0 6 0 0 0 8 0 0 0]
	// illegal address in thread [4 0 0]
}
