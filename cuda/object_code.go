// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cudago/cudago/internal/ptx"
)

// ObjectCode is compiled code, with the modules that it is loaded as.
//
// # Lifetime
//
// Close it when done. What was loaded stays loaded until the last [Kernel] of
// it is closed too.
//
// Safe for concurrent use.
type ObjectCode struct {
	// Kind is [PTX], [Cubin], [Fatbin], [LTOIR], [Object] or [Library]. All fields
	// are read-only.
	Kind string
	// Data is the code.
	Data []byte
	// PTX is the code as PTX, if known; it gives the signatures of kernels.
	PTX string
	// Log is the compiler's output: warnings.
	Log string

	names map[string]string // name expression to symbol

	parse      sync.Once
	signatures map[string][]ptx.Param // of PTX; by symbol

	declare   sync.Once
	constants []string // of PTX; symbols of variables in constant memory

	analyse sync.Once
	stores  map[string][]bool // of PTX, as ptx.Stores says; by symbol

	describe  sync.Once
	described map[string][]ptx.DebugParam // of PTX; by symbol

	mu     sync.Mutex
	found  map[string]string    // guarded by mu; name to symbol, of names that were looked for
	closed bool                 // guarded by mu
	loaded map[*Device]*loading // guarded by mu
}

// loading is a module that is loaded or being loaded. The fields are fixed when
// done is closed.
type loading struct {
	done chan struct{}
	m    *Module
	err  error
}

// isLost reports whether the module was loaded, and lost in a reset.
func (l *loading) isLost() bool {
	select {
	case <-l.done:
		return l.m != nil && l.m.ctx.IsLost()
	default:
		return false
	}
}

// ObjectCodeFrom wraps code that was compiled elsewhere. PTX may end in a NUL.
//
// Errors: an [*ArgumentError] for an unknown kind or empty data.
func ObjectCodeFrom(kind string, data []byte) (*ObjectCode, error) {
	if !slices.Contains([]string{PTX, Cubin, Fatbin, LTOIR, Object, Library}, kind) {
		return nil, badValue("kind", `must be "ptx", "cubin", "fatbin", "ltoir", "object" or "library", got %q`, kind)
	}
	if len(data) == 0 {
		return nil, badValue("data", "must not be empty")
	}
	code := &ObjectCode{Kind: kind, Data: data}
	if kind == PTX {
		code.Data = bytes.TrimRight(data, "\x00")
		code.PTX = string(code.Data)
	}
	return code, nil
}

// objectCodeState is what [ObjectCode.State] has.
type objectCodeState struct {
	Kind           string
	Data, PTX, Log []byte // which need not be UTF-8
	Names          map[string]string
}

// State returns what [ObjectCodeFromState] makes the same code of, in another
// process too. It is of use to nobody else.
func (o *ObjectCode) State() []byte {
	state := objectCodeState{Kind: o.Kind, Data: o.Data, Log: []byte(o.Log), Names: o.names}
	if o.Kind != PTX {
		state.PTX = []byte(o.PTX)
	}
	text, err := json.Marshal(state)
	if err != nil {
		panic("BUG: the state of object code: " + err.Error())
	}
	return text
}

// ObjectCodeFromState makes code of what [ObjectCode.State] has returned, which
// is loaded by itself.
//
// Errors: an [*ArgumentError] if it is not that.
func ObjectCodeFromState(state []byte) (*ObjectCode, error) {
	var s objectCodeState
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, badValue("state", "must be that of object code: %v", err)
	}
	code, err := ObjectCodeFrom(s.Kind, s.Data)
	if err != nil {
		return nil, err
	}
	code.Log, code.names = string(s.Log), s.Names
	if s.Kind != PTX {
		code.PTX = string(s.PTX)
	}
	return code, nil
}

// Load loads the code on dev, or returns the Module of an earlier Load since
// the last reset of dev. The Module belongs to o: retain it to keep it longer
// than o. It calls cuModuleLoadDataEx.
//
// Blocks until loaded, which for PTX may take seconds; a second caller waits
// for the first.
//
// Errors: [ErrClosed]; a [*PTXError] if the driver refuses the PTX; an [*Error]
// otherwise, such as [ErrorNoBinaryForGPU]. A later Load tries again.
func (o *ObjectCode) Load(dev *Device) (*Module, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, &ClosedError{"object code"}
	}
	l, found := o.loaded[dev]
	var lost *Module
	if found && l.isLost() {
		lost, found = l.m, false
	}
	if !found {
		l = &loading{done: make(chan struct{})}
		if o.loaded == nil {
			o.loaded = make(map[*Device]*loading)
		}
		o.loaded[dev] = l
	}
	o.mu.Unlock()
	if lost != nil {
		lost.Release()
	}
	if found {
		<-l.done
		return l.m, l.err
	}
	// The lock is not held across the load, which blocks.
	l.m, l.err = loadModule(o, dev)
	o.mu.Lock()
	abandoned := o.closed && l.err == nil
	if l.err != nil || abandoned {
		delete(o.loaded, dev)
	}
	o.mu.Unlock()
	if abandoned {
		l.m.Release()
		l.m, l.err = nil, &ClosedError{"object code"}
	}
	close(l.done)
	return l.m, l.err
}

// IsLoaded reports whether Load would return without waiting, for the driver or
// for another caller. Does not block.
func (o *ObjectCode) IsLoaded(dev *Device) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l, found := o.loaded[dev]
	if !found {
		return o.closed
	}
	select {
	case <-l.done:
		return !l.isLost()
	default:
		return false
	}
}

// Kernel returns a kernel of the code, which it loads on dev if need be. name
// is a symbol, a name expression of the [Program], or what C++ calls the kernel,
// in any spelling: "f<float,4>", "ns::f(float*)".
//
// Lifetime: the caller must Close the Kernel.
//
// Errors: as for [ObjectCode.Load]; [ErrorNotFound], with the names that there
// are.
func (o *ObjectCode) Kernel(dev *Device, name string) (*Kernel, error) {
	m, err := o.Load(dev)
	if err != nil {
		return nil, err
	}
	return m.Kernel(name)
}

// entries returns the signatures in the PTX. PTX that our parser refuses has
// none: the driver decides whether it is valid.
func (o *ObjectCode) entries() map[string][]ptx.Param {
	o.parse.Do(func() {
		if o.PTX != "" {
			o.signatures, _ = ptx.Signatures(o.PTX)
		}
	})
	return o.signatures
}

// DebugParams returns the names and types of the parameters of a kernel as the
// debug information in the PTX has them; nil if it does not describe the kernel.
// A name may be empty. The first call reads all debug information.
func (o *ObjectCode) DebugParams(symbol string) (names, types []string) {
	o.describe.Do(func() { o.described = ptx.DebugParams(o.PTX) })
	for _, p := range o.described[symbol] {
		names, types = append(names, p.Name), append(types, p.Type)
	}
	return names, types
}

// isConstant reports whether a symbol is that of a variable in constant memory,
// as far as PTX tells. The first call reads the declarations.
func (o *ObjectCode) isConstant(symbol string) bool {
	o.declare.Do(func() { o.constants, _ = ptx.Constants(o.PTX) })
	return slices.Contains(o.constants, symbol)
}

// storesOf tells, for each parameter of the kernel, whether something may be
// stored through it; nil if that is not known. The first call reads all PTX.
func (o *ObjectCode) storesOf(symbol string) []bool {
	o.analyse.Do(func() {
		if o.PTX != "" {
			o.stores, _ = ptx.Stores(o.PTX)
		}
	})
	return o.stores[symbol]
}

// IsClosed reports whether Close was called.
func (o *ObjectCode) IsClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// Close releases the modules of o. Closing twice is fine.
func (o *ObjectCode) Close() error {
	o.mu.Lock()
	loaded := o.loaded
	o.closed, o.loaded = true, nil
	o.mu.Unlock()
	for _, l := range loaded {
		select {
		case <-l.done:
			l.m.Release()
		default: // the loading goroutine sees that o is closed
		}
	}
	return nil
}

// String returns "PTX object code of 1234 bytes".
func (o *ObjectCode) String() string {
	return fmt.Sprintf("%s object code of %d bytes", strings.ToUpper(o.Kind), len(o.Data))
}
