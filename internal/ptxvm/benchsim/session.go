// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
)

// session is a loaded module and the memory that a case has allocated.
type session struct {
	device       *ptxvm.Device
	module       *ptxvm.Module
	allocs       []uint64
	instructions uint64        // executed by launches
	wall, cpu    time.Duration // spent in launches
	checks       check.Set
	task         uint32
	found        []string // by the checks
}

func newSession(d *ptxvm.Device, dir, file string) (*session, error) {
	text, err := os.ReadFile(filepath.Join(dir, file+".ptx"))
	if err != nil {
		return nil, err
	}
	ir, err := ptxir.Load(file, string(text))
	if err != nil {
		return nil, err
	}
	m, err := d.Load(ir)
	return &session{device: d, module: m}, err
}

func (s *session) close() {
	for _, a := range s.allocs {
		if err := s.device.Memory().Free(a, "session"); err != nil {
			panic(err)
		}
	}
	s.module.Unload()
}

// upload copies values to fresh device memory.
func (s *session) upload(values any) (uint64, error) {
	raw, err := encode(values)
	if err != nil {
		return 0, err
	}
	addr, err := s.device.Memory().Alloc(uint64(len(raw)), "upload")
	if err != nil {
		return 0, err
	}
	s.allocs = append(s.allocs, addr)
	return addr, s.device.Memory().Write(addr, raw)
}

func encode(values any) ([]byte, error) {
	var b bytes.Buffer
	err := binary.Write(&b, binary.LittleEndian, values)
	return b.Bytes(), err
}

// download copies device memory into a slice of fixed-size values.
func (s *session) download(addr uint64, values any) error {
	raw := make([]byte, binary.Size(values))
	if err := s.device.Memory().Read(raw, addr); err != nil {
		return err
	}
	_, err := binary.Decode(raw, binary.LittleEndian, values)
	return err
}

// launch runs a kernel and counts its instructions.
func (s *session) launch(name string, grid, block [3]uint32, shared uint32, args ...any) error {
	k, err := s.module.Kernel(name)
	if err != nil {
		return err
	}
	params, err := pack(k.Params(), args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	watch := s.watch()
	var n uint64
	start, cpu := time.Now(), cpuTime()
	err = k.Launch(&ptxvm.Launch{Grid: grid, Block: block, DynamicShared: shared, Params: params, Instructions: &n, Watch: watch})
	s.instructions += n
	s.wall += time.Since(start)
	s.cpu += cpuTime() - cpu
	return err
}

// watch turns the checks on for the next launch, which is ordered after all
// earlier ones.
func (s *session) watch() *check.Watch {
	if s.checks == 0 {
		return nil
	}
	s.task++
	return &check.Watch{
		Checks: s.checks, Task: s.task, Unordered: func(uint32) *check.Watch { return nil },
		Report: func(f *check.Finding) { s.found = append(s.found, f.Error()) },
	}
}

// pack lays out arguments as the kernel's parameters require.
func pack(params []ptxir.Param, args []any) ([]byte, error) {
	if len(params) != len(args) {
		return nil, fmt.Errorf("%d arguments, want %d", len(args), len(params))
	}
	var out []byte
	for i, p := range params {
		out = append(out, make([]byte, int(p.Offset+p.Size)-len(out))...)
		var v uint64
		switch a := args[i].(type) {
		case uint64:
			v = a
		case int:
			v = uint64(a)
		case float32:
			v = uint64(math.Float32bits(a))
		default:
			return nil, fmt.Errorf("argument %d: %T", i, a)
		}
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], v)
		copy(out[p.Offset:], raw[:p.Size])
	}
	return out, nil
}
