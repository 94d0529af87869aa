# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The name by which `_graph` still imports `_import_at_exit`: nothing else does."""

from __future__ import annotations

from ._import_at_exit import late as late
