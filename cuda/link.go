// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda/internal/nvjitlink"
	"github.com/cudago/cudago/internal/ptx"
)

// LinkOptions says how code is linked. The zero value is the linker's defaults for
// the device.
type LinkOptions struct {
	// Name is what messages call the result.
	Name string
	// Arch is the architecture, such as "sm_90". Empty means the device's.
	Arch string
	// Options are passed to nvJitLink, after those that follow from the code.
	Options []string
}

// Link makes one code of several, in which each may use what others define: code
// that was compiled as relocatable device code. target is the kind of the result,
// [PTX], [Cubin], or empty for what this driver runs.
//
// PTX alone is linked to PTX by this package. All else is nvJitLink's, which makes
// machine code, and PTX of LTO-IR alone.
//
// Blocks until done; the first call looks for nvJitLink.
//
// Errors: a [*CompileError] with the log, or with the places where nvJitLink was
// looked for; an [*ArgumentError] for a target that is impossible for the codes; an
// [*Error] with [ErrorNotSupported] for codes that the simulated driver could not
// run once they are linked.
func (d *Driver) Link(dev *Device, codes []*ObjectCode, o LinkOptions, target string) (*ObjectCode, error) {
	if len(codes) == 0 {
		return nil, badValue("codes", "must be at least one")
	}
	if !slices.Contains([]string{"", PTX, Cubin}, target) {
		return nil, badValue("target", `must be "ptx", "cubin" or empty, got %q`, target)
	}
	if o.Name == "" {
		o.Name = "code"
	}
	kinds := kindsOf(codes)
	onlyPTX, onlyLTO := slices.Equal(kinds, []string{PTX}), slices.Equal(kinds, []string{LTOIR})
	toPTX := target == PTX || target == "" && d.codeKind == PTX
	switch {
	case onlyPTX && toPTX:
		return linkPTX(codes, o)
	case !toPTX || onlyLTO:
	case target == PTX:
		return nil, badValue("target", "can be PTX only of PTX alone or of LTO-IR alone, got %s", strings.Join(kinds, ", "))
	default:
		return nil, &Error{
			Op: "link", Result: ErrorNotSupported,
			Detail: "the simulated driver runs only PTX, which is linked of PTX alone or of LTO-IR alone, got " + strings.Join(kinds, ", "),
		}
	}
	linker, err := d.linker()
	if err != nil && onlyPTX && target == "" {
		return linkPTX(codes, o) // the driver compiles it when it loads it
	}
	if err != nil {
		return nil, &CompileError{Name: o.Name, Link: true, Err: err}
	}
	return o.run(linker, dev, codes, toPTX)
}

// kindsOf lists the kinds of codes, each once, sorted.
func kindsOf(codes []*ObjectCode) []string {
	kinds := make([]string, len(codes))
	for i, code := range codes {
		kinds[i] = code.Kind
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// partsOf are codes as PTX; nil if it is not known of each.
func partsOf(codes []*ObjectCode) []ptx.Part {
	parts := make([]ptx.Part, len(codes))
	for i, code := range codes {
		if code.PTX == "" {
			return nil
		}
		parts[i] = ptx.Part{Name: partName(i, code), Text: code.PTX}
	}
	return parts
}

// partName is what messages call one of the codes.
func partName(i int, code *ObjectCode) string { return fmt.Sprintf("code %d (%s)", i, code.Kind) }

// linkPTX links without a library.
func linkPTX(codes []*ObjectCode, o LinkOptions) (*ObjectCode, error) {
	text, err := ptx.Link(partsOf(codes))
	if err != nil {
		return nil, &CompileError{Name: o.Name, Link: true, Log: ReadableText(err.Error())}
	}
	return &ObjectCode{Kind: PTX, Data: []byte(text), PTX: text, names: namesOf(codes)}, nil
}

// inputKinds are what nvJitLink calls the kinds of code.
var inputKinds = map[string]nvjitlink.Kind{
	PTX:     nvjitlink.NVJITLINK_INPUT_PTX,
	Cubin:   nvjitlink.NVJITLINK_INPUT_CUBIN,
	Fatbin:  nvjitlink.NVJITLINK_INPUT_FATBIN,
	LTOIR:   nvjitlink.NVJITLINK_INPUT_LTOIR,
	Object:  nvjitlink.NVJITLINK_INPUT_OBJECT,
	Library: nvjitlink.NVJITLINK_INPUT_LIBRARY,
}

// input is what nvJitLink gets.
func (o LinkOptions) input(dev *Device, codes []*ObjectCode, toPTX bool) (nvjitlink.Input, error) {
	arch := o.Arch
	if arch == "" {
		major, minor, err := dev.ComputeCapability()
		if err != nil {
			return nvjitlink.Input{}, err
		}
		arch = fmt.Sprintf("sm_%d%d", major, minor)
	}
	in := nvjitlink.Input{Options: []string{"-arch=" + arch}, PTX: toPTX}
	if slices.Contains(kindsOf(codes), LTOIR) && !slices.Contains(o.Options, "-lto") {
		in.Options = append(in.Options, "-lto")
	}
	if toPTX {
		in.Options = append(in.Options, "-ptx")
	}
	in.Options = append(in.Options, o.Options...)
	for i, code := range codes {
		in.Pieces = append(in.Pieces, nvjitlink.Piece{Kind: inputKinds[code.Kind], Data: code.Data, Name: partName(i, code)})
	}
	return in, nil
}

// run links by the library.
func (o LinkOptions) run(linker nvjitlink.Linker, dev *Device, codes []*ObjectCode, toPTX bool) (*ObjectCode, error) {
	in, err := o.input(dev, codes, toPTX)
	if err != nil {
		return nil, err
	}
	out, r := linker.Link(in)
	if r == nvjitlink.NVJITLINK_ERROR_UNRECOGNIZED_OPTION || r == nvjitlink.NVJITLINK_ERROR_MISSING_ARCH {
		return nil, badValue("options", "are not all accepted by nvJitLink: %v (given: %s)", r, strings.Join(in.Options, " "))
	}
	if r != nvjitlink.NVJITLINK_SUCCESS || len(out.Code) == 0 {
		log := out.Log
		if log == "" {
			log = r.String()
		}
		bad := &CompileError{Name: o.Name, Link: true, Log: ReadableText(log), Options: in.Options}
		if r != nvjitlink.NVJITLINK_SUCCESS {
			bad.Op, bad.Code, bad.CodeName = out.Failed, int32(r), r.String()
		}
		return nil, bad
	}
	made := &ObjectCode{Kind: Cubin, Data: out.Code, Log: out.Log, names: namesOf(codes)}
	if toPTX {
		made.Kind, made.PTX = PTX, string(out.Code)
	} else if parts := partsOf(codes); parts != nil {
		made.PTX, _ = ptx.Link(parts) // for the signatures, which the driver else knows the sizes of
	}
	return made, nil
}

// namesOf joins the name expressions of the codes.
func namesOf(codes []*ObjectCode) map[string]string {
	names := map[string]string{}
	for _, code := range codes {
		maps.Copy(names, code.names)
	}
	return names
}
