# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is printed: to a reader that leaves before the end, or in an encoding that lacks letters."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Generator

# What a shell gives for a program that the signal ends, which Python does not let it do.
BROKEN = 128 + signal.SIGPIPE


@contextlib.contextmanager
def escaped() -> Generator[None, None, None]:
    """Print what the terminal's encoding has not as escapes, such as names of nodes and files."""
    stream = sys.stdout
    before = stream.errors if isinstance(stream, io.TextIOWrapper) else None
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=before)


@contextlib.contextmanager
def may_break() -> Generator[None, None, None]:
    """End the process quietly if nobody reads any more what it writes."""
    # None where the process was started without one.
    streams = [s for s in (sys.stdout, sys.stderr) if s is not None]
    try:
        try:
            yield
        finally:  # argparse ends with SystemExit after --help
            for stream in streams:
                stream.flush()
    except BrokenPipeError:
        for stream in streams:
            try:
                stream.flush()
            except BrokenPipeError:  # it keeps the text, and would fail again at exit
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
        raise SystemExit(BROKEN) from None
