# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Actions: what hostile code does in the middle of a call."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cudago as cu

from .world import N, World

if TYPE_CHECKING:
    from .forms import Trap

CHILD_LIMIT_S = 10


class Raised(Exception):
    """What the action "raise" raises."""


class Scene:
    """What actions work on: the world, the trap, and the call that is under way."""

    def __init__(self, world: World, trap: Trap) -> None:
        self.world, self.trap = world, trap
        self.again: Callable[[], Any] = lambda: None


def close(scene: Scene, *names: str) -> None:
    """Close some things, or all."""
    for name in names or scene.world.closable():
        with contextlib.suppress(Exception):
            scene.world.things[name].close()


def drop(scene: Scene) -> None:
    """Delete the last references that the case has, but for those of the call itself."""
    scene.world.things.clear()
    for cell in scene.trap.values:
        cell.clear()
    gc.collect()


def overwrite(scene: Scene) -> None:
    """Close everything, and overwrite the memory that was freed."""
    close(scene)
    gc.collect()
    stream = cu.Device().default_stream
    for size in (256, 256, 256, 1024):
        with cu.Device().allocate(size, stream=stream) as buffer:
            buffer.fill(0xEE, stream=stream)


def update(scene: Scene) -> None:
    """Give the executable other operands."""
    step = scene.world.things.get("exec")
    if step is None:
        return
    with contextlib.suppress(ValueError):
        step["memset"].update(scene.world.get("pinned"), 2)
        step["memcpy"].update(src=scene.world.get("pinned"))
        step["kernel"].update(
            scene.world.get("config"), scene.world.get("kernel"), scene.world.get("pinned"), 1, N
        )


def launch(scene: Scene) -> None:
    """Launch a kernel and an executable on the same stream."""
    w = scene.world
    cu.launch(w.get("stream"), w.get("config"), w.get("kernel"), w.get("buffer"), 1, N)
    w.get("exec").launch(w.get("stream"))


def exchange(scene: Scene) -> None:
    """Export and import by DLPack."""
    with cu.from_dlpack(scene.world.get("tensor")) as tensor:
        _ = tensor.shape


def begin_capture(scene: Scene) -> None:
    """Begin a capture on the stream, and leave it open."""
    here = threading.current_thread() is threading.main_thread()
    scene.world.begin_capture("global" if here else "relaxed")


def end_capture(scene: Scene) -> None:
    """End the capture that the case began with."""
    scene.world.end_captures()


def fork(scene: Scene) -> None:
    """Fork; the child tries a call and exits."""
    for _ in range(5):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                scene.again()
            os._exit(0)
        status = ended(child)
        if status is not None:
            if status:  # no cudago call may raise SystemError, so each of these is a failure
                raise SystemError(f"the forked child ended with {status}")
            return
        at = waits_at(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not is_sanitizers(at):
            raise SystemError(f"the forked child hung; its system call: {at}")
    raise SystemError("five forked children hung in AddressSanitizer's allocator")


def ended(child: int) -> int | None:
    """Wait for a process, but not for ever; return its exit code, None if it still runs."""
    end = time.monotonic() + CHILD_LIMIT_S
    while (seen := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            return None
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(seen[1])


def waits_at(child: int) -> str:
    """Return what the kernel says of the system call that a process is in."""
    try:
        return Path(f"/proc/{child}/syscall").read_text().strip()
    except OSError as e:
        return str(e)


def is_sanitizers(call: str) -> bool:
    """Whether it waits for a lock of AddressSanitizer's allocator.

    Up to LLVM 16, and so GCC 13, a fork leaves the locks that other threads hold in it locked for
    the child. They lie in and behind the allocator's part of the address space (asan_allocator.h).
    """
    words = call.split()
    return len(words) > 1 and 0x600000000000 <= int(words[1], 16) < 0x641000000000


def raise_exception(scene: Scene) -> None:
    """Raise."""
    raise Raised


def interrupt(scene: Scene) -> None:
    """Ctrl-C, delivered here."""
    signal.raise_signal(signal.SIGINT)


def alarm(scene: Scene) -> None:
    """A signal whose handler closes everything, to be delivered a moment later."""
    signal.signal(signal.SIGALRM, lambda number, frame: close(scene))
    signal.setitimer(signal.ITIMER_REAL, 1e-6)


def alarm_raises(scene: Scene) -> None:
    """A signal whose handler raises, to be delivered a moment later."""

    def handler(number: int, frame: Any) -> None:
        raise Raised

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-6)


def other_thread(scene: Scene) -> None:
    """Another thread closes everything."""
    thread = threading.Thread(target=close, args=(scene,))
    thread.start()
    thread.join()


def again(scene: Scene) -> None:
    """The same call once more, on other arguments."""
    with contextlib.suppress(Exception):
        scene.again()


ACTIONS: dict[str, Callable[[Scene], None]] = {
    "close": close,
    "overwrite": overwrite,
    "drop": drop,
    "capture": begin_capture,
    "uncapture": end_capture,
    "thread": other_thread,
    "update": update,
    "launch": launch,
    "exchange": exchange,
    "again": again,
    "alarm": alarm,
    "collect": lambda scene: gc.collect() and None,
    "raise": raise_exception,
    "interrupt": interrupt,
    "alarm_raises": alarm_raises,
    "fork": fork,
}

# After these a call that returns has done what it does undisturbed.
NEUTRAL = {"close", "drop", "thread", "exchange", "collect", "fork", "alarm"}


def disarm() -> None:
    """Take back what alarms have left."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


def perform(name: str, scene: Scene) -> None:
    """Do an action by its name: one of ACTIONS, or ``close:thing``."""
    kind, _, thing = name.partition(":")
    if thing:
        close(scene, thing)
    else:
        ACTIONS[kind](scene)
