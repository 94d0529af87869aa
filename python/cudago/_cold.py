# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The name by which `_graph` still imports `_gopy_call`: nothing else does."""

from __future__ import annotations

from ._gopy_call import read as read
