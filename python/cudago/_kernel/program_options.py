# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How programs are compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Literal

from . import nvvm
from .headers import directories, may_include
from .option_checks import check, is_mapping, is_pair, plain, texts_of
from .standard import built_in

__all__ = ["ProgramOptions"]

# Fields that are one option of NVRTC each: switches, those that can be turned on and off, and those
# with a value.
_SWITCHES = {
    "device_as_default_execution_space": "--device-as-default-execution-space",
    "device_code_optimize": "--dopt=on",
    "device_float128": "--device-float128",
    "device_int128": "--device-int128",
    "disable_warnings": "--disable-warnings",
    "extensible_whole_program": "--extensible-whole-program",
    "extra_device_vectorization": "--extra-device-vectorization",
    "fdevice_syntax_only": "--fdevice-syntax-only",
    "gen_opt_lto": "--gen-opt-lto",
    "minimal": "--minimal",
    "no_display_error_number": "--no-display-error-number",
    "no_source_include": "--no-source-include",
    "pch": "--pch",
    "relocatable_device_code": "--relocatable-device-code=true",
    "restrict": "--restrict",
}
_CHOICES = {
    "brief_diagnostics": "--brief-diagnostics",
    "builtin_initializer_list": "--builtin-initializer-list",
    "builtin_move_forward": "--builtin-move-forward",
    "device_stack_protector": "--device-stack-protector",
    "fma": "--fmad",
    "ftz": "--ftz",
    "instantiate_templates_in_pch": "--instantiate-templates-in-pch",
    "modify_stack_limit": "--modify-stack-limit",
    "pch_messages": "--pch-messages",
    "pch_verbose": "--pch-verbose",
    "prec_div": "--prec-div",
    "prec_sqrt": "--prec-sqrt",
}
_VALUES = {
    "create_pch": "--create-pch",
    "diag_error": "--diag-error",
    "diag_suppress": "--diag-suppress",
    "diag_warn": "--diag-warn",
    "fdevice_time_trace": "--fdevice-time-trace",
    "frandom_seed": "--frandom-seed",
    "jump_table_density": "--jump-table-density",
    "ofast_compile": "--Ofast-compile",
    "optimization_info": "--optimization-info",
    "pch_dir": "--pch-dir",
    "pre_include": "--pre-include",
    "ptxas_options": "--ptxas-options",
    "split_compile": "--split-compile",
    "time": "--time",
    "use_pch": "--use-pch",
    "warning_as_error": "--warning-as-error",
}


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """Compiler options for a `Program`.

    Parameters
    ----------
    arch : str, optional
        Architecture, such as ``"sm_90"`` or ``"compute_80"``; by default the device's.
    std : str, optional
        Language standard, such as ``"c++17"``.
    include_path : str or path, or sequence of such, optional
        Directories that ``#include`` searches.
    headers : mapping of str to str, optional
        Files to include that need not exist: their texts by their names.
    find_headers : bool
        Whether ``#include`` also searches, last, where NVIDIA's packages and the CUDA toolkit have
        CUDA's headers, CUB and libcu++; and finds headers of C's standard library, such as
        ``<cstdint>``, ``<math.h>`` and ``<stdio.h>``, with what the compiler knows of them.
    define_macro : str, tuple of two, sequence of such, or mapping, optional
        Macros: ``"NAME"``, ``"NAME=VALUE"``, the tuple ``("NAME", "VALUE")``, or a mapping of names
        to values. Values are str or numbers; None is for a name alone, and a bool is 1 or 0. A
        tuple of two is always one macro.
    undefine_macro : str or sequence of str, optional
        Macros to leave undefined.
    pre_include : str or path, or sequence of such, optional
        Headers to include before the source.
    fast_math : bool
        Whether to trade precision for speed.
    ftz, prec_div, prec_sqrt, fma : bool, optional
        Whether denormal floats become zero, division and square roots are exact, and products and
        sums are fused; by default as the compiler does.
    debug, lineinfo : bool
        Whether to add debug information, or line numbers only.
    device_code_optimize : bool
        Whether code with debug information is optimized too.
    max_registers : int, optional
        Maximum number of registers per thread.
    relocatable_device_code, extensible_whole_program : bool
        Whether the code is to be linked, or may call what is linked to it.
    extra_device_vectorization, restrict : bool
        Whether to vectorize more, and to take pointer parameters for ``__restrict__``.
    gen_opt_lto : bool
        Whether LTO-IR is optimized before it is linked.
    device_stack_protector, modify_stack_limit : bool, optional
        Whether kernels check that the stack was not overwritten, and whether the limit of the
        host's stack is raised while compiling.
    jump_table_density : int, optional
        From which share of cases, in percent, a ``switch`` becomes a table; 101 for never.
    ofast_compile : {"0", "min", "mid", "max"}, optional
        How far to trade the code's speed for the compiler's.
    frandom_seed : str, optional
        What names that must be unique are made from, so that the code is the same each time.
    device_int128, device_float128 : bool
        Whether the types ``__int128`` and ``__float128`` are there.
    device_as_default_execution_space : bool
        Whether functions without ``__host__`` or ``__device__`` are the device's.
    builtin_move_forward, builtin_initializer_list : bool, optional
        Whether ``std::move``, ``std::forward`` and ``std::initializer_list`` are built in.
    minimal, no_source_include : bool
        Whether to leave out what is declared by default, and the directory of the source from those
        that are searched.
    pch : bool
        Whether headers are precompiled, and found precompiled, in `pch_dir`.
    create_pch, use_pch, pch_dir : str or path, optional
        Precompiled header to write or to read, and their directory.
    pch_verbose, pch_messages, instantiate_templates_in_pch : bool, optional
        Whether the log says why a precompiled header was not used, and that one was made or used;
        whether templates are instantiated before it is made.
    ptxas_options : str or sequence of str, optional
        Options for the assembler, such as ``"-v"``.
    diag_error, diag_suppress, diag_warn : int or sequence of int, optional
        Numbers of messages to make errors, to leave out, or to make warnings.
    disable_warnings, no_display_error_number : bool
        Whether to leave out warnings, and the numbers of messages.
    warning_as_error : str or sequence of str, optional
        Kinds of warnings to make errors, such as ``"all-warnings"``.
    brief_diagnostics : bool, optional
        Whether messages leave out the line of the source.
    fdevice_syntax_only : bool
        Whether to stop after the checks of the source: the code is then empty.
    optimization_info : str, optional
        Optimizations to report: ``"inline"``.
    split_compile : int, optional
        Number of threads that optimize; 0 for one per core.
    time, fdevice_time_trace : str or path, optional
        Files to which the compiler writes how long its phases took: a table, and a trace for
        ``chrome://tracing``, to whose name the compiler adds ``.json``.
    options : sequence of str
        Passed to the compiler as they are, after all others.
    optimization_level : int, optional
        For NVVM IR, 0 or 3: whether it is optimized; by default it is, unless `debug` is true.
    extra_sources : sequence of tuple of str and str or bytes
        For NVVM IR, modules that are compiled together with the source: their names, and their
        texts or bitcode.
    use_libdevice : bool, optional
        For NVVM IR, whether the functions ``__nv_*`` of NVIDIA's libdevice are linked in; by
        default if a module names any.
    name : str
        Source file name in messages.
    name_expressions : sequence of str
        Kernels and variables as C++ spells them, such as ``"scale<float>"`` and ``"&table"``. The
        compiler makes the named instances of templates; `ObjectCode.get_kernel` finds them by this
        spelling or any other.

    Raises
    ------
    TypeError, ValueError
        If a field has a value of another type, a negative number, or text with a NUL. What else a
        text may be is up to the compiler.

    Notes
    -----
    NVVM IR takes `arch`, `fast_math`, `ftz`, `prec_div`, `prec_sqrt`, `fma`, `debug`,
    `jump_table_density`, `options` and `name`, besides the three fields that are only for it. All
    others are a `ValueError` with it: line numbers, for one, come of its own metadata.

    Examples
    --------
    >>> options = cudago.ProgramOptions(std="c++17", define_macro={"SIZE": 4})
    >>> options.std
    'c++17'
    """

    arch: str | None = None
    std: str | None = None
    include_path: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None
    headers: Mapping[str, str] | None = None
    find_headers: bool = True
    define_macro: (
        str | tuple[str, Any] | Sequence[str | tuple[str, Any]] | Mapping[str, Any] | None
    ) = None
    undefine_macro: str | Sequence[str] | None = None
    pre_include: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None
    fast_math: bool = False
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    debug: bool = False
    lineinfo: bool = False
    device_code_optimize: bool = False
    max_registers: int | None = None
    relocatable_device_code: bool = False
    extensible_whole_program: bool = False
    extra_device_vectorization: bool = False
    restrict: bool = False
    gen_opt_lto: bool = False
    device_stack_protector: bool | None = None
    modify_stack_limit: bool | None = None
    jump_table_density: int | None = None
    ofast_compile: Literal["0", "min", "mid", "max"] | None = None
    frandom_seed: str | None = None
    device_int128: bool = False
    device_float128: bool = False
    device_as_default_execution_space: bool = False
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    minimal: bool = False
    no_source_include: bool = False
    pch: bool = False
    create_pch: str | PathLike[str] | None = None
    use_pch: str | PathLike[str] | None = None
    pch_dir: str | PathLike[str] | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    ptxas_options: str | Sequence[str] | None = None
    diag_error: int | Sequence[int] | None = None
    diag_suppress: int | Sequence[int] | None = None
    diag_warn: int | Sequence[int] | None = None
    disable_warnings: bool = False
    no_display_error_number: bool = False
    warning_as_error: str | Sequence[str] | None = None
    brief_diagnostics: bool | None = None
    fdevice_syntax_only: bool = False
    optimization_info: str | None = None
    split_compile: int | None = None
    time: str | PathLike[str] | None = None
    fdevice_time_trace: str | PathLike[str] | None = None
    options: Sequence[str] = ()
    optimization_level: int | None = None
    extra_sources: Sequence[tuple[str, str | bytes]] = ()
    use_libdevice: bool | None = None
    name: str = "program"
    name_expressions: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        check(self)

    def _json(self, kind: str, source: Any, cache: bool) -> str:
        if kind == "nvvm":
            return json.dumps({"NoCache": not cache} | nvvm.config(source, self))
        include_path, headers = texts_of(self.include_path), dict(self.headers or {})
        if self.find_headers and may_include(source, headers, self.pre_include):
            headers |= built_in(source, headers, include_path)
            include_path = [*include_path, *directories()]
        return json.dumps(
            {
                "NoCache": not cache,
                "Name": self.name,
                "Arch": self.arch or "",
                "Std": self.std or "",
                "IncludePath": include_path,
                "Headers": [{"Name": n, "Source": t} for n, t in headers.items()],
                "DefineMacro": _macros(self.define_macro),
                "UndefineMacro": texts_of(self.undefine_macro),
                "FastMath": self.fast_math,
                "Debug": self.debug,
                "LineInfo": self.lineinfo,
                "MaxRegisters": int(self.max_registers or 0),
                "Options": self._flags() + texts_of(self.options),
                "NameExpressions": texts_of(self.name_expressions),
            }
        )

    def _flags(self) -> list[str]:
        given = self.__dict__
        flags = [text for name, text in _SWITCHES.items() if given[name]]
        for name, text in _CHOICES.items():
            if given[name] is not None:
                flags.append(f"{text}={'true' if given[name] else 'false'}")
        for name, text in _VALUES.items():
            value = given[name]
            flags += [f"{text}={v}" for v in texts_of(value)]
        return flags


def _macros(value: Any) -> list[str]:
    """Return checked macros as texts."""
    if is_mapping(value):
        return [_macro(k, v) for k, v in value.items()]
    if is_pair(value):
        return [_macro(*value)]
    if value is None or isinstance(value, (str, PathLike)):
        return texts_of(value)
    return [_macro(*v) if is_pair(v) else fspath(v) for v in value]


def _macro(name: str, value: Any) -> str:
    return name if value is None else f"{name}={plain(value)}"


def expect_options(options: Any) -> None:
    """Raise TypeError if these are neither None nor options of a program."""
    if options is not None and not isinstance(options, ProgramOptions):
        raise TypeError(
            f"options must be ProgramOptions, not {type(options).__name__}: "
            "write options=ProgramOptions(arch=..., ...)"
        )
