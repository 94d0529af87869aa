# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Linking code to code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .. import _core
from .._ordinal import device_or_first
from .object_code import ObjectCode
from .option_checks import check, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._memory.device import Device

__all__ = ["Linker", "LinkerOptions"]

# Fields that are one option of nvJitLink each: switches, those that can be turned on and off, those
# with a number, and those with several values.
_SWITCHES = {
    "link_time_optimization": "-lto",
    "debug": "-g",
    "lineinfo": "-lineinfo",
    "optimize_unused_variables": "-optimize-unused-variables",
    "time": "-time",
    "verbose": "-verbose",
    "no_cache": "-no-cache",
}
_CHOICES = {"ftz": "-ftz", "prec_div": "-prec-div", "prec_sqrt": "-prec-sqrt", "fma": "-fma"}
_NUMBERS = {
    "max_registers": "-maxrregcount=",
    "optimization_level": "-O",
    "split_compile": "-split-compile=",
}
_LISTS = {
    "kernels_used": "-kernels-used=",
    "variables_used": "-variables-used=",
    "ptxas_options": "-Xptxas=",
}


@dataclass(frozen=True, kw_only=True)
class LinkerOptions:
    """Options for a `Linker`; they have no effect where PTX alone is linked to PTX.

    Parameters
    ----------
    arch : str, optional
        Architecture of the result, such as ``"sm_90"``; by default the device's.
    link_time_optimization : bool
        Whether to optimize across codes; always done if one of them is LTO-IR.
    max_registers : int, optional
        Maximum number of registers per thread.
    optimization_level : int, optional
        0 to 3.
    debug, lineinfo : bool
        Whether to add debug information, or only line numbers.
    ftz, prec_div, prec_sqrt, fma : bool, optional
        As in `ProgramOptions`, for LTO-IR.
    kernels_used, variables_used : str or sequence of str, optional
        Names of what is needed: the rest is left out.
    optimize_unused_variables : bool
        Whether to leave out variables that device code does not use.
    ptxas_options : str or sequence of str, optional
        Options for the assembler.
    split_compile : int, optional
        Number of threads that optimize; 0 for one per core.
    time, verbose : bool
        Whether ``log`` says how long the phases took, and what was done.
    no_cache : bool
        Whether nvJitLink caches nothing.
    options : sequence of str
        Passed to nvJitLink as they are, after all others.
    name : str
        What messages call the result.

    Raises
    ------
    TypeError, ValueError
        If a field has a value of another type, a negative number, or text with a NUL.

    Examples
    --------
    >>> cudago.LinkerOptions(max_registers=32).max_registers
    32
    """

    arch: str | None = None
    link_time_optimization: bool = False
    max_registers: int | None = None
    optimization_level: int | None = None
    debug: bool = False
    lineinfo: bool = False
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    kernels_used: str | Sequence[str] | None = None
    variables_used: str | Sequence[str] | None = None
    optimize_unused_variables: bool = False
    ptxas_options: str | Sequence[str] | None = None
    split_compile: int | None = None
    time: bool = False
    verbose: bool = False
    no_cache: bool = False
    options: Sequence[str] = ()
    name: str = "code"

    def __post_init__(self) -> None:
        check(self)

    def _flags(self) -> list[str]:
        given = self.__dict__
        flags = [text for name, text in _SWITCHES.items() if given[name]]
        for name, text in _CHOICES.items():
            if given[name] is not None:
                flags.append(f"{text}={'true' if given[name] else 'false'}")
        flags += [f"{text}{int(given[n])}" for n, text in _NUMBERS.items() if given[n] is not None]
        for name, text in _LISTS.items():
            flags += [text + value for value in texts_of(given[name])]
        return flags + texts_of(self.options)


class Linker:
    """Codes that use each other's functions and variables, to be made one.

    Parameters
    ----------
    *codes : ObjectCode
        Code that was compiled with ``ProgramOptions(relocatable_device_code=True)`` or to LTO-IR
        (``compile("ltoir")``), or that other compilers made.
    options : LinkerOptions, optional
        Options.

    Attributes
    ----------
    codes : tuple of ObjectCode
        As given.

    Notes
    -----
    PTX alone is linked by cudago itself where the result is PTX, as on the simulated driver.
    Everything else is linked by NVIDIA's nvJitLink, which ``pip install 'cudago[link]'`` brings
    along. It makes PTX of LTO-IR, too, so that the simulated driver runs that.

    Examples
    --------
    >>> relocatable = cudago.ProgramOptions(relocatable_device_code=True)
    >>> source = "extern __device__ int twice(int x); "
    >>> source += 'extern "C" __global__ void f(int* x) { *x = twice(*x); }'
    >>> main = cudago.Program(source, options=relocatable).compile("ptx")
    >>> source = "__device__ int twice(int x) { return 2 * x; }"
    >>> helper = cudago.Program(source, options=relocatable).compile("ptx")
    >>> code = cudago.Linker(main, helper).link()
    >>> x = cudago.full(1, 21, "int32", stream=stream)
    >>> code["f"][1, 1, stream](x)
    >>> x.item(stream=stream)
    42
    """

    __slots__ = ("_options", "codes")

    def __init__(self, *codes: ObjectCode, options: LinkerOptions | None = None) -> None:
        if not codes:
            raise ValueError("a linker needs at least one code")
        for i, code in enumerate(codes):
            if not isinstance(code, ObjectCode):
                raise TypeError(f"code {i} must be an ObjectCode, not {type(code).__name__}")
        if options is not None and not isinstance(options, LinkerOptions):
            raise TypeError(
                f"options must be LinkerOptions, not {type(options).__name__}: "
                "write options=LinkerOptions(arch=..., ...)"
            )
        self.codes: tuple[ObjectCode, ...] = codes
        self._options = options or LinkerOptions()

    def link(
        self, target: Literal["ptx", "cubin"] | None = None, *, device: Device | None = None
    ) -> ObjectCode:
        """Link the codes.

        Parameters
        ----------
        target : {"ptx", "cubin"}, optional
            Kind of code to produce; by default the one that this driver runs.
        device : Device, optional
            Device to link for; by default device 0.

        Returns
        -------
        ObjectCode
            Not yet loaded. Its ``log`` has what the linker wrote.

        Raises
        ------
        CompileError
            If the codes do not link, such as for a function that none of them defines, or two do;
            ``.log`` has the linker's output. Or if nvJitLink is needed and not found: the message
            says where it was looked for.
        ValueError
            If `target` is not possible for these codes, or the linker refuses an option.
        UnsupportedError
            If the simulated driver could not run the result.

        Notes
        -----
        Blocks until the linker is done.

        References
        ----------
        ``nvJitLinkComplete``
        """
        if target not in (None, "ptx", "cubin"):
            raise ValueError(f"target must be 'ptx' or 'cubin', got {target!r}")
        given, handles = self._options, [code._handle for code in self.codes]
        options = {
            "Name": given.name,
            "Arch": given.arch or "",
            "Options": given._flags(),
            "Codes": [handle.id for handle in handles],
        }
        on = device_or_first(device)
        return ObjectCode(*_core._link(on, target or "", json.dumps(options)))

    def __repr__(self) -> str:
        return f"<cudago.Linker of {', '.join(code.kind for code in self.codes)}>"
