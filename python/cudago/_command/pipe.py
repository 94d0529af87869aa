# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pipes whose reader leaves before the end, as in ``cudago info | head -1``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Generator

# What a shell gives for a program that the signal ends, which Python does not let it do.
BROKEN = 128 + signal.SIGPIPE


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
