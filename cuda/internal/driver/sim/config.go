// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// config is the parsed form of Options.Config.
type config struct {
	devices  int
	major    int
	minor    int
	memory   uint64  // bytes of a device
	pageable bool    // kernels may touch host memory that was allowed
	full     bool    // check=full
	seed     uint64  // 0: graphs run in the order of building
	steps    uint64  // loop iterations of a warp after which a kernel is stuck; 0: no limit
	workers  int     // 0: as many as CPUs
	hostile  bool    // calls take long, and a stale stream is no mere error
	faulty   bool    // calls may be made to fail, by the driver around this one
	faults   float64 // the share of calls that fail at random
}

// Faults says what a driver around this one is to do: whether calls are to fail,
// which share of them, and the seed that chooses which.
func (d *simulator) Faults() (wanted bool, rate float64, seed uint64) {
	return d.config.faulty, d.config.faults, d.config.seed
}

func parseConfig(text string) (config, error) {
	c := config{devices: 1, major: 7, minor: 5, memory: 2 << 30, pageable: true}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		key, value, _ := strings.Cut(item, "=")
		set := settings[key]
		if set == nil {
			return c, fmt.Errorf("simulated driver: setting must be devices, cc, memory, pageable, check, seed, steps, workers, hostile or faults, got %q", item)
		}
		if err := set(&c, value); err != nil {
			return c, fmt.Errorf("simulated driver: %s: %w", key, err)
		}
	}
	return c, nil
}

var settings = map[string]func(*config, string) error{
	"devices":  func(c *config, v string) (err error) { c.devices, err = parseCount(v, 1, 16); return err },
	"workers":  func(c *config, v string) (err error) { c.workers, err = parseCount(v, 1, 1024); return err },
	"memory":   func(c *config, v string) (err error) { c.memory, err = parseBytes(v); return err },
	"seed":     func(c *config, v string) (err error) { c.seed, err = strconv.ParseUint(v, 10, 64); return err },
	"steps":    func(c *config, v string) (err error) { c.steps, err = parseSteps(v); return err },
	"hostile":  func(c *config, v string) (err error) { c.hostile, err = strconv.ParseBool(v); return err },
	"pageable": func(c *config, v string) (err error) { c.pageable, err = strconv.ParseBool(v); return err },
	"faults": func(c *config, v string) (err error) {
		c.faulty = true
		c.faults, err = strconv.ParseFloat(v, 64)
		if err == nil && !(c.faults >= 0 && c.faults <= 1) {
			err = fmt.Errorf("must be 0 to 1, got %q", v)
		}
		return err
	},
	"check": func(c *config, v string) error {
		if v != "default" && v != "full" {
			return fmt.Errorf("must be default or full, got %q", v)
		}
		c.full = v == "full"
		return nil
	},
	"cc": func(c *config, v string) error {
		major, minor, _ := strings.Cut(v, ".")
		var err error
		if c.major, err = strconv.Atoi(major); err != nil {
			return err
		}
		if c.minor, err = strconv.Atoi(minor); err != nil {
			return err
		}
		if _, ok := profiles[c.major*10+c.minor]; !ok {
			return fmt.Errorf("must be one of %s, got %q", profileList(), v)
		}
		return nil
	},
}

func parseCount(v string, least, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("must be %d to %d, got %d", least, most, n)
	}
	return n, err
}

// parseSteps reads a number such as 1e9.
func parseSteps(v string) (uint64, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err == nil && !(f >= 1 && f <= 1e18) {
		err = fmt.Errorf("must be 1 to 1e18, got %q", v)
	}
	return uint64(f), err
}

// parseBytes reads a size such as 512MiB. A plain number is in bytes.
func parseBytes(v string) (uint64, error) {
	units := []struct {
		suffix string
		shift  uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(v, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err == nil && (n == 0 || n > 1<<46>>u.shift) {
			err = fmt.Errorf("must be above 0 and at most 64 TiB, got %q", v)
		}
		return n << u.shift, err
	}
	panic("BUG: unreachable, the last unit is empty")
}
