# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of this folder importable, by its tests and by the processes that they start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parents[1])
if TESTS not in sys.path:
    sys.path.append(TESTS)


@pytest.fixture
def program(script):
    """Function: runs a program of this folder in a process of its own, and returns what it
    prints."""

    def run(module: str, *arguments: str, devices: int = 1) -> str:
        source = f"""
        import sys
        sys.path.append({TESTS!r})
        if __name__ == "__main__":
            sys.argv[1:] = {arguments!r}
            from promises.{module} import main
            sys.exit(main())
        """
        done = script(source, CUDAGO_SIM=f"devices={devices}")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:] + done.stderr
        return done.stdout

    return run
