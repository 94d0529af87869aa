# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Interpreter exit.

From here on every cudago call raises, in every thread. Python joins non-daemon threads before this
point and soon afterwards stops daemon threads silently; so what cudago raises in a daemon thread in
between is not printed either.
"""

from __future__ import annotations

import sys
import threading

from . import _core
from .errors import ClosedError

__all__: list[str] = []


def shutdown() -> None:
    """Shut cudago down. Called once, by `atexit`."""
    _keep_daemons_quiet()
    _core._shutdown()


def _keep_daemons_quiet() -> None:
    print_threads, print_unraisable = threading.excepthook, sys.unraisablehook

    def threads(args: threading.ExceptHookArgs, /) -> None:
        daemon = args.thread is None or args.thread.daemon
        if not (daemon and hasattr(args.exc_value, "_at_exit")):
            print_threads(args)

    def unraisable(args: sys.UnraisableHookArgs, /) -> None:
        main = threading.get_ident() == threading.main_thread().ident
        if main or not hasattr(args.exc_value, "_at_exit"):
            print_unraisable(args)

    threading.excepthook, sys.unraisablehook = threads, unraisable


_core._set_closed_error(ClosedError)
