# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every exception and warning of cudago.

Driver errors are `CUDAError` or a subclass, with the driver's code, its name and the operation that
failed. Invalid arguments raise Python's own `TypeError`, `ValueError` and `OverflowError`, before
anything has happened.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

from . import _core
from . import _zconstants as _z
from ._card import card
from ._gopy import api

__all__ = [
    "CUDAError",
    "CUDAWarning",
    "CheckError",
    "ClosedError",
    "CompileError",
    "DeviceFaultError",
    "DriverNotFoundError",
    "GraphFileError",
    "GraphUpdateError",
    "InternalError",
    "KernelNotFoundError",
    "OutOfMemoryError",
    "PTXError",
    "UnsupportedError",
]


class CUDAError(RuntimeError):
    """A driver call failed.

    Attributes
    ----------
    code : int
        The driver's result code (``CUresult``).
    name : str
        The code's name in ``cuda.h``, such as ``"CUDA_ERROR_INVALID_VALUE"``.
    operation : str
        The driver call, such as ``"cuLaunchKernelEx"``; empty where there was none.
    """

    code: int = 0
    name: str = ""
    operation: str = ""


class OutOfMemoryError(CUDAError, MemoryError):
    """There is not enough memory.

    Attributes
    ----------
    requested : int
        The requested size in bytes; 0 if unknown.
    held : str
        What `memory_summary` returned then, and the five largest allocations that are held, of 1
        MiB or more, with the lines that made them (see `cudago.debug.record_origins`). The message
        ends with it. Empty during captures, when the driver cannot be asked, and for what is no
        allocation of yours, such as a kernel's code.
    """

    requested: int = 0
    held: str = ""

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n{self.held}" if self.held else text


class DeviceFaultError(CUDAError):
    """Work on the device failed in a way that breaks its context.

    The fault may come from work that was queued long before the call that reports it. Later calls
    on the same device fail too, until `Device.reset` or the end of the process. A note of the
    exception says so.
    """


class CheckError(CUDAError):
    """A check of the simulated driver found a defect in the program.

    The message says where: kernel, thread, line, memory and the conflicting access. The work was
    done nevertheless, unless the message says that it was refused, and the device stays usable.
    """


class UnsupportedError(CUDAError, NotImplementedError):
    """The driver or device does not support this; the message names the call or PTX instruction."""


class DriverNotFoundError(CUDAError):
    """There is no usable CUDA driver.

    The message says what was looked for, and how to choose the simulated driver.
    """


class GraphUpdateError(CUDAError):
    """An executable graph cannot become another graph; it is unchanged.

    The message says which node differs, and in what.

    Attributes
    ----------
    node : str
        Name of the node in the other graph; empty if it is not one node.
    """

    node: str = ""


class GraphFileError(ValueError):
    """A file is not a saved graph that can be loaded; the message says why.

    It is damaged, was made by a later version, or is no such file. Nothing has been made of it.
    """


class CompileError(CUDAError):
    """A program does not compile.

    Attributes
    ----------
    log : str
        The compiler's output.
    options : list of str
        The compiler's options.

    Notes
    -----
    ``code`` and ``name`` are those of the compiler's or linker's header, such as 6 and
    ``"NVRTC_ERROR_COMPILATION"``, and ``operation`` is its call, such as ``"nvrtcCompileProgram"``.
    They are empty where none of its calls failed, as where there is no compiler.
    """

    log: str = ""
    options: list[str]

    _repr_html_ = card


class KernelNotFoundError(CUDAError, KeyError):
    """The code has no kernel, or no variable, of this name; the message lists those that exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError's would add quotes


class PTXError(CUDAError, ValueError):
    """The driver rejects the PTX text; the message shows the line.

    Attributes
    ----------
    line, column : int
        Position, counted from 1; 0 if the driver does not report it.
    """

    line: int = 0
    column: int = 0

    _repr_html_ = card


class ClosedError(ValueError):
    """A closed object was used."""


class InternalError(RuntimeError):
    """A defect in cudago: please report it with this message. The process can continue."""


class CUDAWarning(RuntimeWarning):
    """Something failed where no exception can be raised.

    A release; or the use of an entry of the compile cache, so that the program was compiled.
    """


_CLASSES: dict[int, type[BaseException]] = {
    _z.CUDAGO_NO_DRIVER: DriverNotFoundError,
    _z.CUDAGO_COMPILE: CompileError,
    _z.CUDAGO_PTX: PTXError,
    _z.CUDAGO_CLOSED: ClosedError,
    _z.CUDAGO_TYPE: TypeError,
    _z.CUDAGO_VALUE: ValueError,
    _z.CUDAGO_OVERFLOW: OverflowError,
    _z.CUDAGO_KEY: KeyError,
    _z.CUDAGO_BUFFER: BufferError,
    _z.CUDAGO_INTERNAL: InternalError,
}


_BROKEN = (
    "work that was queued before has broken the device: each call on it fails until Device.reset() "
    "or, if that fails too, until the process ends"
)

_LOOKUPS = ("cuModuleGetFunction", "cuModuleGetGlobal")


def _class_of(kind: int, code: int, detail: dict[str, Any]) -> type[BaseException]:
    if kind != _z.CUDAGO_CUDA:
        return _CLASSES[kind]
    if code == _z.CUDA_ERROR_OUT_OF_MEMORY:
        return OutOfMemoryError
    if code == _z.CUDA_ERROR_NOT_FOUND and detail.get("operation") in _LOOKUPS:
        return KernelNotFoundError
    if code == _z.CUDA_ERROR_NOT_SUPPORTED:
        return UnsupportedError
    if code == _z.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
        return GraphUpdateError
    if code == _z.CUDAGO_CHECK_FAILED:
        return CheckError
    return DeviceFaultError if detail.get("sticky") else CUDAError


def _invalidation(code: int, message: str, fields: dict[str, Any]) -> str:
    """Note what has invalidated a capture; return the message of an error that is due to that."""
    operation = fields.get("operation")
    if code != _z.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
        _core._invalidated(lambda: f"{operation or 'a call'} at {_core._site()}")
        return ""
    # The end of a capture, after which it is not open any more, says it itself.
    known = _core._invalidated(str) if operation != "cuStreamEndCapture" else ""
    return f"{message} (by {known})" if known else ""


def _make(kind: int, code: int, message: str | None, detail: str | None) -> BaseException:
    """Create the exception for an error from the native module."""
    fields: dict[str, Any] = json.loads(detail) if detail else {}
    cls = _class_of(kind, code, fields)
    error = cls(message or "")
    if kind == _z.CUDAGO_CUDA and (text := _invalidation(code, message or "", fields)):
        error = cls(text)
    if isinstance(error, CUDAError):
        error.code = code
        for key in ("name", "operation", "requested", "log", "options", "line", "column", "node"):
            if key in fields:
                setattr(error, key, fields[key])
    if cls is DeviceFaultError:
        error.add_note(_BROKEN)
    return error


def _decode(text: str) -> BaseException:
    """Create the exception for an error from the half of the API that gopy binds."""
    try:
        fields = json.loads(text)
    except ValueError:  # gopy's own error, not ours
        return InternalError(text)
    return _make(
        fields["kind"], fields["code"], fields["message"], json.dumps(fields["detail"] or {})
    )


def _warn(text: str, code: int) -> None:
    """Warn of an operation that failed in a release, or of a text. Called by the native module."""
    if code:
        text += f" failed with {api.result_name(code)} ({code}) in a release"
        if why := api.result_explanation(code):
            text += f": {why}"
    warnings.warn(text, CUDAWarning, stacklevel=2)
