// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// IsShareable reports whether other processes can open e, or created it.
func (e *Event) IsShareable() bool { return e.shareable }

// Export returns what [Context.OpenEvent] of another process opens the same event
// with. From then on Close leaves the event to the driver: another process may
// use it, which the driver does not know of. It ends with the context. It calls
// cuIpcGetEventHandle.
//
// Errors: an [*ArgumentError] if e was not created for sharing, or by another
// process; [ErrClosed].
func (e *Event) Export() (handle [SharedBytes]byte, err error) {
	switch {
	case e.opened:
		return handle, badValue("", "the event was opened here: only the process that created it can share it")
	case !e.shareable:
		return handle, badValue("", "the event was not created for sharing with other processes")
	}
	var h driver.CUipcEventHandle
	r, err := e.call(func(api driver.API) (r driver.CUresult) {
		h, r = api.CuIpcGetEventHandle(e.h)
		return r
	})
	if err == nil {
		err = e.ctx.check("cuIpcGetEventHandle", r)
	}
	if err == nil {
		e.exported.Store(true)
	}
	return h.Reserved, err
}

// OpenEvent opens an event of another process, which must live until this one is
// closed. It calls cuIpcOpenEventHandle.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*Error] if there is no such event.
func (c *Context) OpenEvent(handle [SharedBytes]byte) (*Event, error) {
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	h, r := c.drv.api.CuIpcOpenEventHandle(driver.CUipcEventHandle{Reserved: handle})
	if r != driver.CUDA_SUCCESS {
		return nil, c.fail("cuIpcOpenEventHandle", r, "an event of another process: is it still there?")
	}
	c.drv.live.events.Add(1)
	return &Event{ctx: c, h: h, shareable: true, opened: true}, nil
}
