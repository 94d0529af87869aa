# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Take along what cudago imports when it is needed, and NVIDIA's libraries that packages brought.

The frozen program has the libraries where cudago looks for them, in nvidia/*/lib.
"""

from __future__ import annotations

from PyInstaller import isolated
from PyInstaller.utils.hooks import collect_submodules


@isolated.decorate
def _libraries() -> list[tuple[str, str]]:
    from cudago import _libraries

    return _libraries.to_freeze()


hiddenimports = collect_submodules("cudago")
_files = _libraries()
binaries = [(file, place) for file, place in _files if not file.endswith(".bc")]
datas = [(file, place) for file, place in _files if file.endswith(".bc")]
