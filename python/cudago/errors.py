# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every exception and warning of cudago.

Driver errors are `CUDAError` or one of its kin and carry the driver's code, its name and the
operation that failed. Wrong arguments are Python's own `TypeError`, `ValueError` and
`OverflowError`, raised before anything has happened.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

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
    """The device has not enough memory.

    Attributes
    ----------
    requested : int
        The size that was asked for, in bytes; 0 if unknown.
    """

    requested: int = 0


class DeviceFaultError(CUDAError):
    """Work on the device failed in a way that breaks its context.

    The fault may belong to work that was queued long before the call that reports it. Later calls
    on the same device fail too, until `Device.reset` or the end of the process.
    """


class CheckError(CUDAError):
    """A check of the simulated driver found a defect in the program.

    The text says where: kernel, thread, line, memory and who else touched it. The work was done all
    the same, unless the text says that it was refused, and the device stays usable.
    """


class UnsupportedError(CUDAError, NotImplementedError):
    """The driver or the device cannot do this; the text names the call or the PTX instruction."""


class DriverNotFoundError(CUDAError):
    """There is no usable CUDA driver.

    The text says what was looked for, and how to choose the simulated one.
    """


class CompileError(CUDAError):
    """A program does not compile.

    Attributes
    ----------
    log : str
        What the compiler wrote.
    options : list of str
        The compiler's options.
    """

    log: str = ""
    options: list[str]

    _repr_html_ = card


class KernelNotFoundError(CUDAError, KeyError):
    """The code has no kernel of this name; the text lists those there are."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # not KeyError's, which quotes


class PTXError(CUDAError, ValueError):
    """PTX text that the driver refuses; the text shows the line.

    Attributes
    ----------
    line, column : int
        Where, counted from 1; 0 if the driver does not say.
    """

    line: int = 0
    column: int = 0

    _repr_html_ = card


class ClosedError(ValueError):
    """A closed object was used."""


class InternalError(RuntimeError):
    """A defect in cudago: please report it with this text. The process can go on."""


class CUDAWarning(RuntimeWarning):
    """A release failed where nothing can be raised."""


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


def _class_of(kind: int, code: int, detail: dict[str, Any]) -> type[BaseException]:
    if kind != _z.CUDAGO_CUDA:
        return _CLASSES[kind]
    if code == _z.CUDA_ERROR_OUT_OF_MEMORY:
        return OutOfMemoryError
    if code == _z.CUDA_ERROR_NOT_FOUND and detail.get("operation") == "cuModuleGetFunction":
        return KernelNotFoundError
    if code == _z.CUDA_ERROR_NOT_SUPPORTED:
        return UnsupportedError
    if code == _z.CUDAGO_CHECK_FAILED:
        return CheckError
    return DeviceFaultError if detail.get("sticky") else CUDAError


def _make(kind: int, code: int, message: str | None, detail: str | None) -> BaseException:
    """Build the exception for an error that came out of the native module."""
    fields: dict[str, Any] = json.loads(detail) if detail else {}
    cls = _class_of(kind, code, fields)
    error = cls(message or "")
    if isinstance(error, CUDAError):
        error.code = code
        for key in ("name", "operation", "requested", "log", "options", "line", "column"):
            if key in fields:
                setattr(error, key, fields[key])
    return error


def _decode(text: str) -> BaseException:
    """Build the exception for an error of the half of the API that gopy binds."""
    try:
        fields = json.loads(text)
    except ValueError:  # not from our Go code: gopy's own
        return InternalError(text)
    return _make(
        fields["kind"], fields["code"], fields["message"], json.dumps(fields["detail"] or {})
    )


def _warn(operation: str, code: int) -> None:
    """Report a release that failed."""
    text = f"{operation} failed with {api.result_name(code)} ({code}) in a release"
    if why := api.result_explanation(code):
        text += f": {why}"
    warnings.warn(text, CUDAWarning, stacklevel=2)
