# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago``: the command line."""

from __future__ import annotations

import sys

from ._command import main

if __name__ == "__main__":
    sys.exit(main())
