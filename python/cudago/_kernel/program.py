# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Compiling source to code."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .. import _core, compile_cache
from .._ordinal import device_at
from ..errors import CompileError
from .headers import hint
from .object_code import ObjectCode
from .program_options import ProgramOptions

if TYPE_CHECKING:
    import os

    from .._memory.device import Device

__all__ = ["Program"]

_log = logging.getLogger("cudago")


class Program:
    """Source code and its compiler options.

    Parameters
    ----------
    source : str
        CUDA C++ or PTX.
    kind : {"c++", "ptx"}
        Language of `source`.
    options : ProgramOptions, optional
        Compiler options.

    Attributes
    ----------
    source, kind : str
        As given.

    Examples
    --------
    >>> code = cudago.Program('extern "C" __global__ void nothing() {}', "c++").compile()
    >>> code["nothing"].name
    'nothing'
    """

    __slots__ = ("_options", "kind", "source")

    def __init__(
        self,
        source: str,
        kind: Literal["c++", "ptx"] = "c++",
        *,
        options: ProgramOptions | None = None,
    ) -> None:
        if not isinstance(source, str):
            raise TypeError(f"source must be a str, not {type(source).__name__}")
        if kind not in ("c++", "ptx"):
            raise ValueError(f"kind must be 'c++' or 'ptx', got {kind!r}")
        if (at := source.find("\0")) >= 0:  # the compilers would end there
            line = source.count("\n", 0, at) + 1
            raise ValueError(f"source must have no NUL, and has one in line {line}")
        if options is not None and not isinstance(options, ProgramOptions):
            raise TypeError(
                f"options must be ProgramOptions, not {type(options).__name__}: "
                "write options=ProgramOptions(arch=..., ...)"
            )
        self.source: str = source
        self.kind = kind
        self._options = options or ProgramOptions()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        kind: Literal["c++", "ptx"] | None = None,
        *,
        options: ProgramOptions | None = None,
    ) -> Program:
        """Read source from a file.

        Parameters
        ----------
        path : str or path
            The file, in UTF-8.
        kind : {"c++", "ptx"}, optional
            Language of the file; by default PTX if its name ends in ``.ptx``, else CUDA C++.
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
        source = file.read_text(encoding="utf-8")
        if kind is None:
            kind = "ptx" if file.suffix == ".ptx" else "c++"
        made = cls(source, kind, options=options)
        if made._options.name == ProgramOptions.name:
            made._options = replace(made._options, name=str(file))
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
            header that is not found, the message says what to install. Or if NVRTC is not found:
            the message says where it was looked for.
        ValueError
            If `target` is not possible for PTX source.

        Warns
        -----
        CUDAWarning
            If the cache has a damaged entry, which is made anew, or a folder that is not used,
            because another user can change it.

        Notes
        -----
        Blocks until the compiler is done.

        References
        ----------
        ``nvrtcCompileProgram``

        Examples
        --------
        >>> code = cudago.Program('extern "C" __global__ void nothing() {}').compile("ptx")
        >>> code.kind, ".entry nothing" in code.ptx
        ('ptx', True)
        """
        target_name = target or ""
        if target_name not in ("", "ptx", "cubin", "ltoir"):
            raise ValueError(f"target must be 'ptx', 'cubin' or 'ltoir', got {target!r}")
        compile_cache._ensure()
        on = device_at() if device is None else device
        options = self._options._json(self.source, cache)
        began = time.perf_counter()
        try:
            handle, kind, log, warning = _core._compile(
                on, self.source, self.kind, target_name, options
            )
        except CompileError as e:
            e.args = ("\n".join(filter(None, (str(e), _pointed(e.log), hint(e.log)))),)
            raise
        took_ms = 1000 * (time.perf_counter() - began)
        _log.debug("compiled %r to %s in %.1f ms", self._options.name, kind, took_ms)
        code = ObjectCode(handle, kind, log)
        code._source = (self.kind, self.source)
        if warning:
            compile_cache._warn(warning)
        return code

    def __repr__(self) -> str:
        return (
            f"<cudago.Program {self._options.name!r}: {self.kind}, {len(self.source)} characters>"
        )


# What the compiler writes below an error: the line, and where in it.
_POINTED = re.compile(r"error[^\n]*:[^\n]*\n(?P<line>[^\n]*\n[ \t]*\^)[ \t]*(?:\n|$)")


def _pointed(log: str) -> str:
    """Return the line of the first error, and the caret below it; empty if the log has none."""
    found = _POINTED.search(log)
    return found["line"] if found else ""
