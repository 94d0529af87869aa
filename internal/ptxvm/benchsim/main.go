// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Command benchsim measures the simulated device: it runs kernels that NVRTC
// compiled, checks their results against references in Go, and prints how many
// thread-level PTX instructions a second each executes. Its tests run the same
// kernels at small sizes.
//
//	go run ./internal/ptxvm/benchsim [-workers n] [-run name] [-check all] [-cpuprofile file]
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
)

func main() {
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "blocks that run at once")
	only := flag.String("run", "", "only kernels whose name contains this")
	ptx := flag.String("ptx", "internal/ptx/testdata/nvrtc", "folder of the kernels")
	rounds := flag.Int("rounds", 5, "runs of each kernel; the best counts")
	check := flag.String("check", "", "run under these checks: races, uninitialized, all")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			log.Fatal(err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			log.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	d := ptxvm.NewDevice(ptxvm.Config{Workers: *workers})
	defer d.Close()
	fmt.Printf("%d workers, best of %d\n%-20s %10s %9s %10s %14s\n", *workers, *rounds, "kernel", "M instr", "ms", "M instr/s", "M per CPU s")
	var total measurement
	for _, c := range cases {
		if !strings.Contains(c.name, *only) {
			continue
		}
		m, err := measure(d, *ptx, c, *rounds, checks[*check])
		if err != nil {
			log.Fatalf("%s: %v", c.name, err)
		}
		m.print(c.name)
		if c.weighted {
			total.instructions += m.instructions
			total.best += m.best
			total.cpu += m.cpu
		}
	}
	if total.best > 0 {
		total.print("all, time-weighted")
	}
}

var checks = map[string]check.Set{
	"": 0, "races": check.Races, "uninitialized": check.Uninitialized, "all": check.Races | check.Uninitialized,
}

// measurement is the best of several runs.
type measurement struct {
	instructions uint64
	best         time.Duration
	cpu          time.Duration // least of all runs: other work on the machine hardly affects it
}

func (m measurement) print(name string) {
	n := float64(m.instructions) / 1e6
	fmt.Printf("%-20s %10.1f %9.2f %10.0f %14.0f\n", name, n, m.best.Seconds()*1e3, n/m.best.Seconds(), n/m.cpu.Seconds())
}

func measure(d *ptxvm.Device, dir string, c *benchCase, rounds int, checks check.Set) (measurement, error) {
	s, err := newSession(d, dir, c.file)
	if err != nil {
		return measurement{}, err
	}
	defer s.close()
	s.checks = checks
	run, check, err := c.prepare(s, c.full)
	if err != nil {
		return measurement{}, err
	}
	var m measurement
	for i := range rounds {
		s.instructions, s.wall, s.cpu = 0, 0, 0
		if err := run(); err != nil {
			return m, err
		}
		if i == 0 || s.wall < m.best {
			m.best = s.wall
		}
		if i == 0 || s.cpu < m.cpu {
			m.cpu = s.cpu
		}
		m.instructions = s.instructions
	}
	for _, f := range s.found {
		fmt.Println(f)
	}
	return m, check()
}

// cpuTime is the processor time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
