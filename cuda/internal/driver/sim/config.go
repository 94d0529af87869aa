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
	steps    uint64  // loop iterations and calls of a warp after which a kernel is stuck; 0: no limit
	workers  int     // 0: as many as CPUs
	hostile  bool    // calls take long, queues become full, and a stale stream ends the process
	faulty   bool    // calls may be made to fail, by the driver around this one
	faults   float64 // the share of calls that fail at random
}

// Faults returns the settings for a driver around this one: whether calls may
// fail, which share of them fails at random, and the seed for that.
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
			return c, fmt.Errorf("CUDAGO_SIM, the settings of the simulated driver, may have devices, cc, memory, pageable, check, seed, steps, workers, hostile and faults, got %q", item)
		}
		if expected := set(&c, value); expected != "" {
			return c, fmt.Errorf("CUDAGO_SIM, the settings of the simulated driver: %s must be %s, got %q", key, expected, value)
		}
	}
	return c, nil
}

// settings put a value into the configuration, or say what they expected.
var settings = map[string]func(c *config, value string) (expected string){
	"devices":  func(c *config, v string) string { return parseCount(&c.devices, v, 1, 16) },
	"workers":  func(c *config, v string) string { return parseCount(&c.workers, v, 1, 1024) },
	"memory":   func(c *config, v string) string { return parseBytes(&c.memory, v) },
	"steps":    func(c *config, v string) string { return parseSteps(&c.steps, v) },
	"hostile":  func(c *config, v string) string { return parseBool(&c.hostile, v) },
	"pageable": func(c *config, v string) string { return parseBool(&c.pageable, v) },
	"seed": func(c *config, v string) string {
		var err error
		if c.seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return "a whole number from 0 to 2^64 - 1"
		}
		return ""
	},
	"faults": func(c *config, v string) string {
		c.faulty = true
		var err error
		if c.faults, err = strconv.ParseFloat(v, 64); err != nil || !(c.faults >= 0 && c.faults <= 1) {
			return "a share from 0 to 1"
		}
		return ""
	},
	"check": func(c *config, v string) string {
		if v != "default" && v != "full" {
			return "default or full"
		}
		c.full = v == "full"
		return ""
	},
	"cc": func(c *config, v string) string {
		// As printed by %d.%d and in no other way: 07.5 is none.
		for number := range profiles {
			if v == fmt.Sprintf("%d.%d", number/10, number%10) {
				c.major, c.minor = number/10, number%10
				return ""
			}
		}
		return "one of " + profileList()
	},
}

func parseBool(into *bool, v string) (expected string) {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return "1 or 0"
	}
	*into = on
	return ""
}

func parseCount(into *int, v string, least, most int) (expected string) {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return fmt.Sprintf("a whole number from %d to %d", least, most)
	}
	*into = n
	return ""
}

// parseSteps reads a number such as 1e9.
func parseSteps(into *uint64, v string) (expected string) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 1 && f <= 1e18) {
		return "a number from 1 to 1e18"
	}
	*into = uint64(f)
	return ""
}

// parseBytes reads a size such as 512MiB. A plain number is in bytes.
func parseBytes(into *uint64, v string) (expected string) {
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
		if err != nil || n == 0 || n > 1<<46>>u.shift {
			return "a size such as 512MiB or 8GiB, above 0 and at most 64 TiB"
		}
		*into = n << u.shift
		return ""
	}
	panic("BUG: unreachable, the last unit is empty")
}
