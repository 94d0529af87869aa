# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Ask for known vulnerabilities: ``python scripts/audit.py``, with GO set, as ``make audit`` does.

Of what is linked into the module govulncheck knows, of the Python packages here pip-audit. Both ask
services. The exit status is 1 if one found something or failed, 2 if one could not be asked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOVULNCHECK = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
UNREACHABLE = re.compile(
    r"no such host|name resolution|name or service not known|network is unreachable"
    r"|connection (refused|reset|aborted)|max retries|timed? ?out|proxyconnect|ServiceError",
    re.I,
)


def judge(status: int, said: str) -> str:
    """Return what became of a question: ok, FAILED, or NOT ASKED with the line that says why."""
    skipped = re.findall(r"(\S+) +Dependency not found on PyPI and could not be audited", said)
    if not status:
        return (
            f"NOT ASKED about what the service does not have: {', '.join(skipped)}"
            if skipped
            else "ok"
        )
    why = [line.strip() for line in said.splitlines() if UNREACHABLE.search(line)]
    if why:
        return f"NOT ASKED, so nothing is known: the service could not be reached: {why[-1][:300]}"
    return "FAILED"


def questions() -> Iterator[tuple[str, list[str]]]:
    """Yield who is asked, and how."""
    go = os.environ.get("GO", "go")
    yield "govulncheck", [go, "run", GOVULNCHECK, "-tags", "pyext", "./..."]
    folder = Path(sys.prefix) / "audit"
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        venv.create(folder, with_pip=True)
    yield "pip, for pip-audit", [python, "-m", "pip", "install", "-q", "pip-audit"]
    here = sysconfig.get_path("purelib")
    yield "pip-audit", [python, "-m", "pip_audit", "--skip-editable", "--path", here]


def main() -> int:
    """Ask, and print what was answered."""
    verdicts: list[str] = []
    for name, command in questions():
        run = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        verdicts.append(judge(run.returncode, run.stdout))
        if verdicts[-1] == "FAILED" or not name.startswith("pip,"):
            print(run.stdout, end="")
        print(f"audit: {name}: {verdicts[-1]}", flush=True)
    return 1 if "FAILED" in verdicts else 0 if set(verdicts) == {"ok"} else 2


if __name__ == "__main__":
    sys.exit(main())
