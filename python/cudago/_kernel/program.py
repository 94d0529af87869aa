# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Compiling source to code."""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .. import _core, compile_cache
from .._ordinal import device_or_first
from ..errors import CompileError
from . import nvvm
from .headers import hint
from .object_code import ObjectCode
from .program_options import ProgramOptions, expect_options

if TYPE_CHECKING:
    from .._memory.device import Device

__all__ = ["Program"]

_log = logging.getLogger("cudago")


class Program:
    """Source code and its compiler options.

    Parameters
    ----------
    source : str or bytes
        CUDA C++, PTX, or NVVM IR: LLVM's, as text or as bitcode, which is bytes.
    kind : {"c++", "ptx", "nvvm"}
        Language of `source`.
    options : ProgramOptions, optional
        Compiler options.

    Attributes
    ----------
    source : str or bytes
        As given.
    kind : str
        As given.

    Notes
    -----
    NVRTC compiles C++ (``pip install 'cudago[sim]'`` brings it along), and libnvvm compiles NVVM IR
    (``pip install 'cudago[nvvm]'``). The driver takes PTX.

    Examples
    --------
    >>> code = cudago.Program('extern "C" __global__ void nothing() {}', "c++").compile()
    >>> code["nothing"].name
    'nothing'
    """

    __slots__ = ("__weakref__", "_options", "kind", "source")

    def __init__(
        self,
        source: str | bytes,
        kind: Literal["c++", "ptx", "nvvm"] = "c++",
        *,
        options: ProgramOptions | None = None,
    ) -> None:
        if kind not in ("c++", "ptx", "nvvm"):
            raise ValueError(f"kind must be 'c++', 'ptx' or 'nvvm', got {kind!r}")
        if kind == "nvvm":
            if isinstance(source, bytearray):
                source = bytes(source)
            nvvm.bytes_of("source", source)
        elif not isinstance(source, str):
            raise TypeError(f"source must be a str, not {type(source).__name__}")
        elif (at := source.find("\0")) >= 0:  # the compilers would end there
            line = source.count("\n", 0, at) + 1
            raise ValueError(f"source must have no NUL, and has one in line {line}")
        expect_options(options)
        self.source: str | bytes = source
        self.kind = kind
        self._options = options or ProgramOptions()
        nvvm.check(kind, source, self._options)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        kind: Literal["c++", "ptx", "nvvm"] | None = None,
        *,
        options: ProgramOptions | None = None,
    ) -> Program:
        """Read source from a file.

        Parameters
        ----------
        path : str or path
            The file, in UTF-8, or bitcode.
        kind : {"c++", "ptx", "nvvm"}, optional
            Language of the file; by default PTX if its name ends in ``.ptx``, NVVM IR if it ends in
            ``.ll`` or ``.bc``, else CUDA C++.
        options : ProgramOptions, optional
            Compiler options. If their ``name`` is the default, messages name the file, and
            ``#include "name"`` looks beside it.

        Returns
        -------
        Program
            The program. Later changes of the file do not affect it.

        Raises
        ------
        OSError
            If the file cannot be read.
        UnicodeDecodeError
            If it is not text.
        """
        file = Path(path)
        language = _KINDS.get(file.suffix, "c++") if kind is None else kind
        source = file.read_bytes() if language == "nvvm" else file.read_text("utf-8-sig")
        made = cls(source, language, options=options)
        if made._options.name == ProgramOptions.name:
            name = os.fsencode(file).decode(errors="replace")  # the compilers know UTF-8 alone
            made._options = replace(made._options, name=name)
        return made

    def compile(
        self,
        target: Literal["ptx", "cubin", "ltoir"] | None = None,
        *,
        device: Device | None = None,
        cache: bool = True,
    ) -> ObjectCode:
        """Compile the program, or find it in the cache of compiled programs.

        Parameters
        ----------
        target : {"ptx", "cubin", "ltoir"}, optional
            Kind of code to produce; by default the one that this driver runs.
        device : Device, optional
            Device to compile for; by default device 0.
        cache : bool
            Whether code from the cache will do, and is kept there: see ``cudago.compile_cache``.

        Returns
        -------
        ObjectCode
            Not yet loaded. A new one each time, with variables of its own.

        Raises
        ------
        CompileError
            If the source does not compile: the message has the line of the first error and a caret,
            and ``.log`` all of the compiler's output. If it includes a
            header that is not found, the message says what to install. Or if the compiler is not
            found: the message says where it was looked for, and what to install.
        ValueError
            If `target` is not possible for PTX source, or the compiler refuses an option.

        Warns
        -----
        CUDAWarning
            If the cache has a damaged entry, which is made anew, or a folder that is not used,
            because another user can change it.

        Notes
        -----
        Blocks until the compiler is done. NVVM IR is verified first, and becomes PTX. If `target`
        says so, or if the driver is older than libnvvm's PTX, nvJitLink makes machine code of that
        (``pip install 'cudago[link]'``).

        References
        ----------
        ``nvrtcCompileProgram``, ``nvvmVerifyProgram``, ``nvvmCompileProgram``

        Examples
        --------
        >>> code = cudago.Program('extern "C" __global__ void nothing() {}').compile("ptx")
        >>> code.kind, ".entry nothing" in code.ptx
        ('ptx', True)
        """
        target_name = target or ""
        if target_name not in ("", "ptx", "cubin", "ltoir"):
            raise ValueError(f"target must be 'ptx', 'cubin' or 'ltoir', got {target!r}")
        _core._drain()  # raises at exit, where looking for headers would fail in another way
        compile_cache._ensure()
        on = device_or_first(device)
        options = self._options._json(self.kind, self.source, cache)
        began = time.perf_counter()
        try:
            handle, kind, log, warning = _core._compile(
                on, self.source, self.kind, target_name, options
            )
        except CompileError as e:
            e.args = ("\n".join(filter(None, (str(e), *self._explained(e.log)))),)
            raise
        took_ms = 1000 * (time.perf_counter() - began)
        _log.debug("compiled %r to %s in %.1f ms", self._options.name, kind, took_ms)
        code = ObjectCode(handle, kind, log)
        if isinstance(self.source, str) and self.kind != "nvvm":
            code._source = (self.kind, self.source)
        else:
            code._source = (self.kind, nvvm.readable(self.source, self._options))
        if warning:
            compile_cache._warn(warning)
        return code

    def _explained(self, log: str) -> tuple[str, str]:
        """Return the place of the first error, and what to do about it, as far as is known."""
        if self.kind == "nvvm":
            about = (log, self.source, self._options)
            return nvvm.pointed(*about), nvvm.hint(*about)
        return _pointed(log), hint(log)

    def __repr__(self) -> str:
        unit = "characters" if isinstance(self.source, str) else "bytes"
        return f"<cudago.Program {self._options.name!r}: {self.kind}, {len(self.source)} {unit}>"


_KINDS: dict[str, Literal["c++", "ptx", "nvvm"]] = {".ptx": "ptx", ".ll": "nvvm", ".bc": "nvvm"}

# What the compiler writes below an error: the line, and where in it.
_POINTED = re.compile(r"error[^\n]*:[^\n]*\n(?P<line>[^\n]*\n[ \t]*\^)[ \t]*(?:\n|$)")


def _pointed(log: str) -> str:
    """Return the line of the first error, and the caret below it; empty if the log has none."""
    found = _POINTED.search(log)
    return found["line"] if found else ""
