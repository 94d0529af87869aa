// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// AsAnother makes a call of the driver as another library of the process would,
// of which this package knows nothing: for tests. The calls are
// cuStreamBeginCapture, in global mode, cuStreamEndCapture, which returns a
// graph, and cuGraphDestroy.
func (c *Context) AsAnother(call string, handle uintptr) (made uintptr, err error) {
	err = c.Do(func() error {
		var r driver.CUresult
		switch call {
		case "cuStreamBeginCapture":
			r = c.drv.api.CuStreamBeginCapture(driver.CUstream(handle), driver.CU_STREAM_CAPTURE_MODE_GLOBAL)
		case "cuStreamEndCapture":
			var g driver.CUgraph
			g, r = c.drv.api.CuStreamEndCapture(driver.CUstream(handle))
			made = uintptr(g)
		case "cuGraphDestroy":
			r = c.drv.api.CuGraphDestroy(driver.CUgraph(handle))
		default:
			return badValue("call", "is none of another library's, got %q", call)
		}
		return c.check(call, r)
	})
	return made, err
}
