# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""As much of Vulkan as exporting semaphores and memory needs, through ctypes.

Structs, numbers and rules are those of vulkan_core.h, Vulkan 1.2 with VK_KHR_external_memory_fd and
VK_KHR_external_semaphore_fd. Nothing is destroyed: it goes with the process.
"""

from __future__ import annotations

import ctypes
import uuid
from ctypes import byref, c_void_p
from typing import Any

_TYPES = {
    "i": ctypes.c_int32, "I": ctypes.c_uint32, "Q": ctypes.c_uint64, "p": c_void_p,
    "z": ctypes.c_char_p, "f": ctypes.c_float,
}  # fmt: skip
OPAQUE_FD = 1
DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT = 1, 2, 4
TIMEOUT_NS = 20 * 10**9


class NoVulkanError(Exception):
    """There is no Vulkan here, or it cannot do what is asked."""


def _struct(number: int, fields: str) -> type[ctypes.Structure]:
    """Make a struct with a type and a chain, from letters and names of its other fields."""
    spec = [("sType", ctypes.c_int32), ("pNext", c_void_p)]
    spec += [(name, _TYPES[letter]) for letter, name in (f.split(":") for f in fields.split())]

    class Struct(ctypes.Structure):
        _fields_ = tuple(spec)

        def __init__(self, chain: ctypes.Structure | None = None, **values: object) -> None:
            super().__init__(sType=number, **values)
            self.kept = chain, values  # ctypes keeps no pointers alive
            if chain is not None:
                self.pNext = ctypes.cast(ctypes.pointer(chain), c_void_p)

    return Struct


_Application = _struct(0, "z:app I:app_version z:engine I:engine_version I:api")
_Instance = _struct(1, "I:flags p:app I:layer_count p:layers I:extension_count p:extensions")
_Queue = _struct(2, "I:flags I:family I:count p:priorities")
_Device = _struct(
    3, "I:flags I:queue_count p:queues I:layers p:names I:extension_count p:extensions p:features"
)
_Submit = _struct(4, "I:n_wait p:waits p:stages I:n_commands p:commands I:n_signal p:signals")
_Allocate = _struct(5, "Q:size I:type")
_Semaphore = _struct(9, "I:flags")
_Buffer = _struct(12, "I:flags Q:size I:usage i:sharing I:n_families p:families")
_Pool = _struct(39, "I:flags I:family")
_Commands = _struct(40, "Q:pool i:level I:count")
_Begin = _struct(42, "I:flags p:inheritance")
_Id = _struct(1000071004, "Q:uuid_low Q:uuid_high Q:driver_low Q:driver_high Q:luid I:mask I:valid")
_ExternalBuffer = _struct(1000072000, "I:types")
_ExportMemory = _struct(1000072002, "I:types")
_MemoryFd = _struct(1000074002, "Q:memory I:type")
_ExportSemaphore = _struct(1000077000, "I:types")
_SemaphoreFd = _struct(1000079001, "Q:semaphore I:type")
_Dedicated = _struct(1000127001, "Q:image Q:buffer")
_Timelines = _struct(1000207000, "I:enabled")
_SemaphoreType = _struct(1000207002, "i:type Q:value")
_SubmitValues = _struct(1000207003, "I:n_wait p:waits I:n_signal p:signals")
_Wait = _struct(1000207004, "I:flags I:count p:semaphores p:values")
_Signal = _struct(1000207005, "Q:semaphore Q:value")


def _array(ctype: type, *values: object) -> c_void_p:
    made = (ctype * len(values))(*values)
    pointer = ctypes.cast(made, c_void_p)
    pointer.kept = made  # type: ignore[attr-defined]
    return pointer


def _entry() -> Any:
    """Find the function that finds the others: of the loader, or of NVIDIA's driver without one."""
    names = (
        ("libvulkan.so.1", "vkGetInstanceProcAddr"),
        ("libGLX_nvidia.so.0", "vk_icdGetInstanceProcAddr"),
        ("libEGL_nvidia.so.0", "vk_icdGetInstanceProcAddr"),
    )
    for library, name in names:
        try:
            get = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        get.restype, get.argtypes = c_void_p, [c_void_p, ctypes.c_char_p]
        return get
    raise NoVulkanError(f"no Vulkan: none of {', '.join(library for library, _ in names)}")


class Vulkan:
    """A device of Vulkan, with one queue."""

    def __init__(self, device_uuid: str | None, extensions: tuple[bytes, ...]) -> None:
        """Open the device with that UUID; without one, a device of the host's processor."""
        self._get = _entry()
        self._instance, self._handle = c_void_p(), c_void_p()
        app = _Application(api=1 << 22 | 2 << 12)
        self._call(
            "vkCreateInstance",
            byref(_Instance(app=_at(app))),
            None,
            byref(self._instance),
            absent=True,
        )
        self._card = self._find(device_uuid)
        priority, names = ctypes.c_float(1), _array(ctypes.c_char_p, *extensions)
        queue = _Queue(family=0, count=1, priorities=_at(priority))
        made = _Device(
            _Timelines(enabled=1),
            queue_count=1,
            queues=_at(queue),
            extension_count=len(extensions),
            extensions=names,
        )
        self._call(
            "vkCreateDevice", self._card, byref(made), None, byref(self._handle), absent=True
        )
        self._queue = c_void_p()
        self._do("vkGetDeviceQueue", self._handle, 0, 0, byref(self._queue))

    def _do(self, name: str, *args: object) -> int:
        address = self._get(self._instance, name.encode())
        if not address:
            raise NoVulkanError(f"no {name}")
        result: int = ctypes.CFUNCTYPE(ctypes.c_int32)(address)(*args)
        return result

    def _call(self, name: str, *args: object, absent: bool = False) -> None:
        if result := self._do(name, *args):
            raise (NoVulkanError if absent else RuntimeError)(f"{name}: VkResult {result}")

    def _find(self, wanted: str | None) -> c_void_p:
        count = ctypes.c_uint32(16)
        cards = (c_void_p * 16)()
        self._call("vkEnumeratePhysicalDevices", self._instance, byref(count), cards, absent=True)
        seen = []
        for card in cards[: count.value]:
            ident = _Id()
            # VkPhysicalDeviceProperties2; the properties have 824 bytes, the type at 16.
            properties = (ctypes.c_uint64 * 128)(1000059001, ctypes.addressof(ident))
            self._do("vkGetPhysicalDeviceProperties2", c_void_p(card), properties)
            is_cpu = properties[4] & 0xFFFFFFFF == 4
            text = str(uuid.UUID(bytes=bytes(ident)[16:32]))
            seen.append(text)
            if is_cpu if wanted is None else text == wanted:
                return c_void_p(card)
        raise NoVulkanError(f"Vulkan has no device {wanted or 'of the host'}, only {seen}")

    def semaphore(self) -> int:
        """Make a timeline semaphore, which can be exported."""
        handle = ctypes.c_uint64()
        made = _Semaphore(_SemaphoreType(_ExportSemaphore(types=OPAQUE_FD), type=1, value=0))
        self._call("vkCreateSemaphore", self._handle, byref(made), None, byref(handle))
        return handle.value

    def semaphore_fd(self, semaphore: int) -> int:
        """Export a semaphore."""
        return self._fd("vkGetSemaphoreFdKHR", _SemaphoreFd(semaphore=semaphore, type=OPAQUE_FD))

    def _fd(self, name: str, info: ctypes.Structure) -> int:
        fd = ctypes.c_int32(-1)
        self._call(name, self._handle, _at(info), _at(fd))
        return fd.value

    def counter(self, semaphore: int) -> int:
        """Return the value that a timeline has now."""
        value = ctypes.c_uint64()
        number = ctypes.c_uint64(semaphore)
        self._call("vkGetSemaphoreCounterValue", self._handle, number, byref(value))
        return value.value

    def signal(self, semaphore: int, value: int) -> None:
        """Signal a timeline from the host."""
        made = _Signal(semaphore=semaphore, value=value)
        self._call("vkSignalSemaphore", self._handle, byref(made))

    def wait(self, semaphore: int, value: int) -> None:
        """Wait for a timeline on the host."""
        made = _Wait(
            count=1,
            semaphores=_array(ctypes.c_uint64, semaphore),
            values=_array(ctypes.c_uint64, value),
        )
        self._call("vkWaitSemaphores", self._handle, byref(made), ctypes.c_uint64(TIMEOUT_NS))

    def buffer(self, size: int, *, exported: bool) -> tuple[int, int, int]:
        """Make a buffer with memory of its own; returns both, and the size of the memory."""
        chain = _ExternalBuffer(types=OPAQUE_FD) if exported else None
        handle, memory = ctypes.c_uint64(), ctypes.c_uint64()
        made = _Buffer(chain, size=size, usage=3)  # a source and a destination of copies
        self._call("vkCreateBuffer", self._handle, byref(made), None, byref(handle))
        needs = (ctypes.c_uint64 * 3)()  # size, alignment, memory types
        self._do("vkGetBufferMemoryRequirements", self._handle, handle, needs)
        which = self._memory_type(
            needs[2], DEVICE_LOCAL if exported else HOST_VISIBLE | HOST_COHERENT
        )
        chain = None
        if exported:
            chain = _ExportMemory(_Dedicated(buffer=handle.value), types=OPAQUE_FD)
        wanted = _Allocate(chain, size=needs[0], type=which)
        self._call("vkAllocateMemory", self._handle, byref(wanted), None, byref(memory))
        self._call("vkBindBufferMemory", self._handle, handle, memory, ctypes.c_uint64(0))
        return handle.value, memory.value, needs[0]

    def _memory_type(self, allowed: int, flags: int) -> int:
        properties = (ctypes.c_uint32 * 260)()
        self._do("vkGetPhysicalDeviceMemoryProperties", self._card, properties)
        for i in range(properties[0]):
            if allowed >> i & 1 and properties[1 + 2 * i] & flags == flags:
                return i
        raise NoVulkanError(f"no memory type with flags {flags}")

    def memory_fd(self, memory: int) -> int:
        """Export memory."""
        return self._fd("vkGetMemoryFdKHR", _MemoryFd(memory=memory, type=OPAQUE_FD))

    def host_view(self, memory: int, size: int) -> memoryview:
        """Map memory that the host sees."""
        address = c_void_p()
        n, zero, handle = ctypes.c_uint64(size), ctypes.c_uint64(0), ctypes.c_uint64(memory)
        self._call("vkMapMemory", self._handle, handle, zero, n, 0, byref(address))
        assert address.value
        return memoryview((ctypes.c_ubyte * size).from_address(address.value)).cast("B")

    def copy(self, src: int, dst: int, size: int, waits: tuple, signals: tuple) -> None:
        """Queue a copy that waits for a value of a timeline, and signals one."""
        pool, commands = ctypes.c_uint64(), c_void_p()
        made = _Pool(family=0)
        self._call("vkCreateCommandPool", self._handle, byref(made), None, byref(pool))
        wanted = _Commands(pool=pool.value, level=0, count=1)
        self._call("vkAllocateCommandBuffers", self._handle, byref(wanted), byref(commands))
        self._call("vkBeginCommandBuffer", commands, byref(_Begin()))
        region = (ctypes.c_uint64 * 3)(0, 0, size)
        a, b = ctypes.c_uint64(src), ctypes.c_uint64(dst)
        self._do("vkCmdCopyBuffer", commands, a, b, 1, region)
        self._call("vkEndCommandBuffer", commands)
        numbers = [_array(ctypes.c_uint64, n) for n in (*waits, *signals)]
        values = _SubmitValues(n_wait=1, waits=numbers[1], n_signal=1, signals=numbers[3])
        submit = _Submit(
            values,
            n_wait=1,
            waits=numbers[0],
            stages=_array(ctypes.c_uint32, 0x1000),  # VK_PIPELINE_STAGE_TRANSFER_BIT
            n_commands=1,
            commands=_at(commands),
            n_signal=1,
            signals=numbers[2],
        )
        none = ctypes.c_uint64(0)
        self._call("vkQueueSubmit", self._queue, 1, byref(submit), none)

    def close(self) -> None:
        """Wait for the queue; the device goes with the process."""
        self._call("vkDeviceWaitIdle", self._handle)


def _at(thing: object) -> c_void_p:
    pointer = ctypes.cast(ctypes.pointer(thing), c_void_p)  # type: ignore[type-var]
    pointer.kept = thing  # type: ignore[attr-defined]
    return pointer
