// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Command benchsim measures the simulated device: it runs kernels that NVRTC
// compiled, checks their results against references in Go, and prints how many
// thread-level PTX instructions a second each executes. Its tests run the same
// kernels at small sizes.
//
//	go run ./internal/ptxvm/benchsim [-workers n] [-run name] [-cpuprofile file]
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/cudago/cudago/internal/ptxvm"
)

func main() {
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "blocks that run at once")
	only := flag.String("run", "", "only kernels whose name contains this")
	ptx := flag.String("ptx", "internal/ptx/testdata/nvrtc", "folder of the kernels")
	rounds := flag.Int("rounds", 5, "runs of each kernel; the best counts")
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
	fmt.Printf("%d workers, best of %d\n%-24s %12s %10s %10s\n", *workers, *rounds, "kernel", "M instr", "ms", "M instr/s")
	var total measurement
	for _, c := range cases {
		if !strings.Contains(c.name, *only) {
			continue
		}
		m, err := measure(d, *ptx, c, *rounds)
		if err != nil {
			log.Fatalf("%s: %v", c.name, err)
		}
		m.print(c.name)
		if c.weighted {
			total.instructions += m.instructions
			total.best += m.best
		}
	}
	if total.best > 0 {
		total.print("all, time-weighted")
	}
}

// measurement is the best of several runs.
type measurement struct {
	instructions uint64
	best         time.Duration
}

func (m measurement) print(name string) {
	fmt.Printf("%-24s %12.1f %10.2f %10.0f\n", name, float64(m.instructions)/1e6,
		float64(m.best.Microseconds())/1e3, float64(m.instructions)/1e6/m.best.Seconds())
}

func measure(d *ptxvm.Device, dir string, c *benchCase, rounds int) (measurement, error) {
	s, err := newSession(d, dir, c.file)
	if err != nil {
		return measurement{}, err
	}
	defer s.close()
	run, check, err := c.prepare(s, c.full)
	if err != nil {
		return measurement{}, err
	}
	var m measurement
	for i := range rounds {
		s.instructions = 0
		start := time.Now()
		if err := run(); err != nil {
			return m, err
		}
		if t := time.Since(start); i == 0 || t < m.best {
			m.best = t
		}
		m.instructions = s.instructions
	}
	return m, check()
}
