# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""pip, with one line per step: ``python scripts/pip_steps.py install -e .``

pip shows nothing of a build, or everything. This shows what our hook says of its steps while they
run, and everything where pip fails.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

OURS = "cudago: "


def main(arguments: list[str]) -> int:
    """Run pip, and return its exit status."""
    print(f"{OURS}pip {shlex.join(arguments)} ...", file=sys.stderr, flush=True)
    began, said = time.monotonic(), []
    command = [sys.executable, "-m", "pip", arguments[0], "-v", *arguments[1:]]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line)
            if line.lstrip().startswith(OURS):
                print(line.strip(), file=sys.stderr, flush=True)
    if pip.returncode:
        sys.stderr.writelines(said)
    outcome = "failed after" if pip.returncode else "took"
    print(f"{OURS}pip {outcome} {time.monotonic() - began:.1f} s", file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
