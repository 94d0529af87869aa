# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled code, its kernels and variables."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

from .. import _core
from .._ordinal import device_at, device_or_first
from .._whole_file import write_whole
from ..errors import ClosedError, KernelNotFoundError
from .parameter_names import parameter_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .._memory.buffer import Buffer
    from .._memory.device import Device
    from .kernel import Kernel

__all__ = ["ObjectCode"]

_PTX_BEGINS = re.compile(r"\s*($|\.version\b|//|/\*)")  # any other str is a path


class ObjectCode:
    """Compiled code, which is loaded on a device when one of its kernels is first needed there.

    Created by `Program.compile`, or from existing code by the class methods. ``code[name]`` is
    ``code.get_kernel(name)``, or ``code.get_global(name)`` if there is no kernel of that name. A
    context manager: leaving the ``with`` block closes it. The code stays loaded until it is closed
    or gone, and its kernels and the buffers over its variables are gone.

    It can be copied and pickled, with its name expressions, and names and types of parameters. A
    copy has variables and kernels of its own, without attributes and types that were set here.

    Attributes
    ----------
    kind : str
        ``"ptx"``, ``"cubin"``, ``"ltoir"``, ``"fatbin"``, ``"object"`` or ``"library"``.
    log : str
        The compiler's output, such as warnings.

    Examples
    --------
    >>> code = cudago.Program('extern "C" __global__ void nothing() {}').compile()
    >>> code.kernels
    ('nothing',)
    >>> code["nothing"]
    <cudago.Kernel nothing()>
    """

    __slots__ = ("__weakref__", "_held", "_kernels", "_source", "kind", "log")
    _source: tuple[str, str] | None  # what was compiled: "c++", "ptx" or "nvvm", and the text

    def __init__(self, handle: Any, kind: str, log: str = "") -> None:
        self._held = handle  # None once closed
        self._kernels: dict[str, Kernel] = {}
        self._source = None
        self.kind: str = kind
        self.log: str = log

    @classmethod
    def _from(cls, kind: str, code: str | bytes | Path) -> ObjectCode:
        if isinstance(code, str) and kind == "ptx" and ("\n" in code or _PTX_BEGINS.match(code)):
            code = code.encode()
        elif isinstance(code, str | os.PathLike):
            with open(code, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
                code = file.read()
        try:
            nbytes = memoryview(code).nbytes
        except TypeError:
            raise TypeError(
                f"code must be {kind}, or the path of a file, not {type(code)}"
            ) from None
        if not nbytes:
            raise ValueError(f"code must be {kind}, or the path of a file, and not empty")
        return cls(_core._code_from(kind, code), kind)

    @classmethod
    def from_ptx(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap PTX: its text, or the path of a file.

        Parameters
        ----------
        code : str, bytes or Path
            PTX, or a path.

        Returns
        -------
        ObjectCode
            Checked when it is loaded, which may raise `PTXError`.
        """
        return cls._from("ptx", code)

    @classmethod
    def from_cubin(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap machine code for one architecture: its bytes, or the path of a file.

        Parameters
        ----------
        code : bytes, or str or Path
            The code, or a path.

        Returns
        -------
        ObjectCode
            Checked when it is loaded. The simulated driver runs only PTX.
        """
        return cls._from("cubin", code)

    @classmethod
    def from_fatbin(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap a bundle of code for several architectures: its bytes, or the path of a file.

        Parameters
        ----------
        code : bytes, or str or Path
            The code, or a path.

        Returns
        -------
        ObjectCode
            Checked when it is loaded. The simulated driver runs only PTX.
        """
        return cls._from("fatbin", code)

    @classmethod
    def from_ltoir(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap LTO-IR: its bytes, or the path of a file.

        Parameters
        ----------
        code : bytes, or str or Path
            The code, or a path.

        Returns
        -------
        ObjectCode
            Cannot be loaded, but linked by `Linker`.
        """
        return cls._from("ltoir", code)

    @classmethod
    def from_object(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap a host object file with device code: its bytes, or the path of a file.

        Parameters
        ----------
        code : bytes, or str or Path
            The file's bytes, or a path.

        Returns
        -------
        ObjectCode
            Cannot be loaded, but linked by `Linker`.
        """
        return cls._from("object", code)

    @classmethod
    def from_library(cls, code: str | bytes | Path) -> ObjectCode:
        """Wrap an archive of object files with device code: its bytes, or the path of a file.

        Parameters
        ----------
        code : bytes, or str or Path
            The file's bytes, or a path such as that of ``libcudadevrt.a``.

        Returns
        -------
        ObjectCode
            Cannot be loaded, but linked by `Linker`.
        """
        return cls._from("library", code)

    def __reduce__(self) -> tuple[Any, ...]:
        handle = self._handle
        state = bytes(_core._code_data(handle.id, "state", None))
        return type(self)._restored, (state, self.kind, self.log, self._source)

    @classmethod
    def _restored(
        cls, state: bytes, kind: str, log: str, source: tuple[str, str] | None
    ) -> ObjectCode:
        """Make the code of what `__reduce__` has said of it."""
        made = cls(_core._code_from_state(state), kind, log)
        made._source = source
        return made

    @property
    def _handle(self) -> Any:
        """The native module's handle, of code that is open."""
        handle = self._held
        if handle is None:
            raise ClosedError("object code is closed")
        return handle

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._held is None

    def close(self) -> None:
        """Give up the code. Closing twice is fine.

        Notes
        -----
        Kernels and buffers that were obtained from it keep working, and keep the code loaded: it
        is unloaded once they are gone, too.
        """
        self._held = None
        self._kernels.clear()

    def __enter__(self) -> Self:
        _ = self._handle
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    @property
    def code(self) -> bytes:
        """The code itself."""
        handle = self._handle  # held here: another thread may close the code
        return bytes(_core._code_data(handle.id, "data", None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the code to a file, which `from_ptx`, `from_cubin` or `from_fatbin` reads.

        Parameters
        ----------
        path : str or path
            The file, which is replaced once all is written.

        Raises
        ------
        OSError
            If the file cannot be written. Nothing is left of it.

        Notes
        -----
        The name expressions that the program was compiled with are not in the file: kernels are
        found by what C++ calls them, see `get_kernel`. Blocks until the file is written.
        """
        write_whole(path, [self.code])

    @property
    def ptx(self) -> str | None:
        """The code as PTX, or None if it is not known."""
        handle = self._handle
        text = bytes(_core._code_data(handle.id, "ptx", None)).decode()
        return text or None

    @property
    def kernels(self) -> tuple[str, ...]:
        """Symbols of the kernels, mangled if they are; loads the code on device 0."""
        handle = self._handle
        text = bytes(_core._code_data(handle.id, "kernels", device_at())).decode()
        return tuple(text.split("\n")) if text else ()

    def get_kernel(
        self,
        name: str,
        *,
        device: Device | None = None,
        strict_types: Sequence[str] | None = None,
    ) -> Kernel:
        """Return a kernel.

        Parameters
        ----------
        name : str
            What C++ calls the kernel, in any spelling: ``"f<float, 4>"``, ``"ns::f<float,4u>"``,
            ``"void f(const unsigned*, size_t)"``; a name expression that the program was compiled
            with; or its symbol.
        device : Device, optional
            Device to load the code on first; by default device 0. The kernel runs on others too.
        strict_types : sequence of str, optional
            Types of its parameters in C++, such as ``("const float*", "int")``: arguments are
            checked for them, as `Kernel.parameter_types` says, which this sets. For code of which
            neither source nor debug information tells them.

        Returns
        -------
        Kernel
            Always the same object for a kernel. Its ``name`` is the one that it was first asked
            for by.

        Raises
        ------
        KernelNotFoundError
            If there is no such kernel, or if several are called so and differ in their parameters;
            the message lists those that exist.
        PTXError
            If the code is PTX that the driver rejects.
        UnsupportedError
            If the kernel needs something that the simulated driver lacks.
        ValueError
            If `strict_types` has another number of types than the kernel has parameters, or one
            that a parameter cannot have.
        CUDAError
            If the code is for another architecture. Or in a host callback, if the code is not
            loaded yet: loading waits for the device, which waits for the callback.

        Notes
        -----
        Blocks until the code is loaded.

        A template has only the kernels that were named when it was compiled: with
        ``ProgramOptions(name_expressions=["f<float, 4>"])``. Types that a program has other names
        for (``using real = float``) are found by the spelling of a name expression, or by their
        own names; the standard's and CUDA's (``uint32_t``, ``half``) are known. So are enumerators,
        as ``f<Mode::fast>``: elsewhere they are numbers, ``f<(Mode)1>`` or ``f<Mode(1)>``, as which
        symbols have them.

        References
        ----------
        ``cuModuleLoadDataEx``, ``cuModuleGetFunction``

        Examples
        --------
        >>> source = "template <class T, int N> __global__ void f(T* x) { *x = N; }"
        >>> options = cudago.ProgramOptions(name_expressions=["f<unsigned, 4>"])
        >>> code = cudago.Program(source, options=options).compile()
        >>> code.get_kernel("f<unsigned int,4>") is code["f<uint32_t, 4>(uint32_t*)"]
        True
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        handle, kernel = self._handle, self._kernels.get(name)
        if kernel is None:
            kernel = self._new_kernel(handle, name, device_or_first(device))
            symbol = kernel._fact("symbol")
            kernel = self._kernels.setdefault(symbol, kernel)
            self._kernels[name] = kernel
            if self._held is None:  # by another thread meanwhile
                self._kernels.clear()
        if strict_types is not None:
            kernel._set_types(strict_types, "strict_types")
        return kernel

    def _new_kernel(self, handle: Any, name: str, device: Device) -> Kernel:
        is_cpp = self._source is not None and self._source[0] == "c++"
        try:
            kernel = _core._kernel_new(handle, handle.id, name, device)
        except KernelNotFoundError as e:
            if is_cpp and "<" in name:
                asks = f"ProgramOptions(name_expressions=[{name!r}])"
                e.args = (f"{e.args[0]}; a template has the kernels that {asks} asks for",)
            raise
        kernel._code, kernel._source = handle, self._source
        kernel._of, kernel._made = ref(self), (self.kind, self.log)
        self._tell_types(kernel)
        return kernel

    def _tell_types(self, kernel: Kernel) -> None:
        """Let a kernel know its types: of debug information, which is exact, or of the source."""
        described = kernel._fact("described").split("\n")
        count = len(described) // 2
        names, types = tuple(described[:count]), tuple(described[count:]) if count else ()
        kernel._described = names if all(names) and len(set(names)) == count else ()
        source = self._source[1] if self._source and self._source[0] == "c++" else ""
        if types or not source:
            kernel._know(types, "")
            return
        plain = kernel._fact("plain")
        kernel._know(parameter_types(source, plain, len(kernel._parameters())), source)

    def get_global(self, name: str, *, device: Device | None = None) -> Buffer:
        """Return a variable of the code, as a Buffer over its memory.

        Parameters
        ----------
        name : str
            What C++ calls the variable, such as ``"ns::weights"``, a name expression such as
            ``"&weights"`` that the program was compiled with, or its symbol.
        device : Device, optional
            Device whose copy of the variable to return; by default device 0.

        Returns
        -------
        Buffer
            Of the variable's size. It keeps the code loaded, as do its views and tensors. That of a
            ``__managed__`` variable supports Python's buffer protocol, as managed memory does.

        Raises
        ------
        KernelNotFoundError
            If there is no such variable; the message lists the names that exist.

        Notes
        -----
        Blocks until the code is loaded. Kernels use the variable without being given it, so you
        order their work and yours, by using one stream. Other libraries that are given the memory
        wait for everything that was queued on the device before.

        The compiler may leave out a variable that no kernel uses: a name expression keeps it. One
        in a namespace, whose symbol is mangled, is found without a name expression if the code's
        PTX is known.

        References
        ----------
        ``cuModuleGetGlobal``

        Examples
        --------
        >>> source = '__device__ int hits; extern "C" __global__ void hit() { hits++; }'
        >>> code = cudago.Program(source).compile()
        >>> code["hit"][1, 1, stream]()
        >>> code.get_global("hits").view("int32").numpy(stream=stream)
        array([1], dtype=int32)
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        handle, on = self._handle, device_or_first(device)
        return _core._code_variable(handle.id, name, on)

    def __getitem__(self, name: str) -> Any:
        """Return the kernel or the variable of a name.

        Parameters
        ----------
        name : str
            As for `get_kernel` or `get_global`.

        Returns
        -------
        Kernel or Buffer
            A kernel, or a Buffer over a variable on device 0.

        Raises
        ------
        KernelNotFoundError
            If there is neither; the message lists the names that exist.
        """
        try:
            return self.get_kernel(name)
        except KernelNotFoundError as no_kernel:
            try:
                return self.get_global(name)
            except KernelNotFoundError:
                raise no_kernel from None

    def __contains__(self, name: object) -> bool:
        """Whether it has a kernel or a variable of a name, as ``code[name]`` finds them."""
        try:
            return isinstance(name, str) and self[name] is not None
        except (KernelNotFoundError, UnicodeEncodeError):  # no name has half a surrogate pair
            return False

    def __iter__(self) -> Iterator[str]:
        """Yield the symbols of the kernels, as `kernels` has them."""
        return iter(self.kernels)

    def __repr__(self) -> str:
        return f"<cudago.ObjectCode: {self.kind}{', closed' * self.is_closed}>"
