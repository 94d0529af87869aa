// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// use installs what package native installs, for one test.
func use(t *testing.T, open func() (*cuda.Driver, error)) {
	t.Helper()
	before := from
	t.Cleanup(func() { from = before })
	from.Open, from.Encode = open, func(err error) string { return "encoded: " + err.Error() }
}

// failing are all bound functions that return an error.
var failing = map[string]func() error{
	"DriverName":           func() error { _, err := DriverName(); return err },
	"DriverVersion":        func() error { _, err := DriverVersion(); return err },
	"DriverNotice":         func() error { _, err := DriverNotice(); return err },
	"DeviceCount":          func() error { _, err := DeviceCount(); return err },
	"DriverObjects":        func() error { _, err := DriverObjects(); return err },
	"DeviceName":           func() error { _, err := DeviceName(0); return err },
	"DeviceUUID":           func() error { _, err := DeviceUUID(0); return err },
	"DevicePCIBusID":       func() error { _, err := DevicePCIBusID(0); return err },
	"DeviceTotalMemory":    func() error { _, err := DeviceTotalMemory(0); return err },
	"DeviceFreeMemory":     func() error { _, err := DeviceFreeMemory(0); return err },
	"DevicePriorityRange":  func() error { _, err := DevicePriorityRange(0); return err },
	"DeviceLimit":          func() error { _, err := DeviceLimit(0, 0); return err },
	"DeviceGraphMemory":    func() error { _, err := DeviceGraphMemory(0); return err },
	"TrimGraphMemory":      func() error { _, err := TrimGraphMemory(0); return err },
	"ResetGraphMemoryHigh": func() error { _, err := ResetGraphMemoryHigh(0); return err },
	"SetDeviceLimit":       func() error { _, err := SetDeviceLimit(0, 0, 1024); return err },
	"Profile":              func() error { _, err := Profile(0, true); return err },
	"DeviceAttribute":      func() error { _, err := DeviceAttribute(0, "warp_size"); return err },
}

func TestErrorsAreEncoded(t *testing.T) {
	use(t, func() (*cuda.Driver, error) { return nil, errors.New("no driver") })
	for name, call := range failing {
		require.EqualError(t, call(), "encoded: no driver", name)
	}
}

// A panic that reached gopy's code would end the Python process.
func TestPanicsBecomeErrors(t *testing.T) {
	use(t, func() (*cuda.Driver, error) { panic("BUG: test") })
	for name, call := range failing {
		require.ErrorContains(t, call(), "encoded: panic: BUG: test\ngoroutine ", name)
	}
}

func TestFactsOfASimulatedDevice(t *testing.T) {
	drv, err := cuda.Open(cuda.Options{Driver: "sim", Sim: "devices=2,cc=8.6,memory=1GiB"})
	require.NoError(t, err)
	defer func() { require.NoError(t, drv.Close()) }()
	use(t, func() (*cuda.Driver, error) { return drv, nil })

	name, err := DriverName()
	require.NoError(t, err)
	require.Equal(t, "sim", name)
	version, err := DriverVersion()
	require.NoError(t, err)
	require.Equal(t, drv.Version(), version)
	count, err := DeviceCount()
	require.NoError(t, err)
	require.Equal(t, 2, count)

	uuid, err := DeviceUUID(1)
	require.NoError(t, err)
	require.Len(t, uuid, 36)
	bus, err := DevicePCIBusID(1)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0$`, bus)
	total, err := DeviceTotalMemory(1)
	require.NoError(t, err)
	require.Equal(t, uint64(1<<30), total)
	product, err := DeviceName(1)
	require.NoError(t, err)
	require.NotEmpty(t, product)
	warp, err := DeviceAttribute(1, "warp_size")
	require.NoError(t, err)
	require.Equal(t, 32, warp)
	free, err := DeviceFreeMemory(1)
	require.NoError(t, err)
	require.Equal(t, uint64(1<<30), free)
	id, err := BufferID(1, 64)
	require.NoError(t, err)
	require.Zero(t, id)
	limits, err := DevicePriorityRange(1)
	require.NoError(t, err)
	var r struct{ Least, Greatest int }
	require.NoError(t, json.Unmarshal([]byte(limits), &r))
	require.Less(t, r.Greatest, r.Least)
	sizes, err := DeviceGraphMemory(1)
	require.NoError(t, err)
	require.JSONEq(t, `{"Used": 0, "UsedHigh": 0, "Reserved": 0, "ReservedHigh": 0}`, sizes)
	_, err = DeviceName(2)
	require.EqualError(t, err, "encoded: ordinal must be 0 to 1, got 2")
}

func TestDriverObjectsCountWhatIsOpen(t *testing.T) {
	drv, err := cuda.Open(cuda.Options{Driver: "sim"})
	require.NoError(t, err)
	defer func() { require.NoError(t, drv.Close()) }()
	use(t, func() (*cuda.Driver, error) { return drv, nil })

	d, err := drv.Device(0)
	require.NoError(t, err)
	c, err := d.Context()
	require.NoError(t, err)
	stream, err := c.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	counts, err := DriverObjects()
	require.NoError(t, err)
	require.JSONEq(t, `{"Stream": 1}`, counts)
	require.NoError(t, stream.Close())
	counts, err = DriverObjects()
	require.NoError(t, err)
	require.Equal(t, "{}", counts)
}

func TestLiveCountsOpenNoDriver(t *testing.T) {
	use(t, func() (*cuda.Driver, error) { panic("the driver is not asked") })
	from.LiveObjects = func() map[string]int { return map[string]int{"Graph": 2} }
	from.LiveStreams = func() int { return 3 }
	counts, err := LiveObjects()
	require.NoError(t, err)
	require.JSONEq(t, `{"Graph": 2}`, counts)
	n, err := LiveStreams()
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestPanicsOfLiveCountsBecomeErrors(t *testing.T) {
	use(t, nil) // and so are what counts
	_, err := LiveObjects()
	require.ErrorContains(t, err, "encoded: panic: ")
	_, err = LiveStreams()
	require.ErrorContains(t, err, "encoded: panic: ")
}

func TestLinked(t *testing.T) {
	versions, err := Linked()
	require.NoError(t, err)
	of := map[string]string{}
	require.NoError(t, json.Unmarshal([]byte(versions), &of))
	require.Equal(t, runtime.Version(), of["go"])
	require.NotContains(t, of, "github.com/cudago/cudago")
}

func TestUnknownAttribute(t *testing.T) {
	use(t, func() (*cuda.Driver, error) { panic("the driver is not asked") })
	_, err := DeviceAttribute(0, "wrap_size")
	require.EqualError(t, err, `encoded: name is no device attribute: "wrap_size"`)
}

func TestAttributeNames(t *testing.T) {
	names := map[string]bool{}
	for i := range AttributeCount() {
		names[AttributeName(i)] = true
	}
	require.Len(t, names, len(cuda.AttributeNames()))
	require.True(t, names["multiprocessor_count"])
	require.Empty(t, AttributeName(-1))
	require.Empty(t, AttributeName(AttributeCount()))
}

func TestResults(t *testing.T) {
	for code := range cuda.Results() {
		require.NotEmpty(t, ResultName(int(code)))
		require.NotEmpty(t, ResultExplanation(int(code)), ResultName(int(code)))
	}
	require.Equal(t, "CUDA_ERROR_OUT_OF_MEMORY", ResultName(2))
	require.Equal(t, "out of memory", ResultExplanation(2))
	require.Empty(t, ResultExplanation(-1))
}
