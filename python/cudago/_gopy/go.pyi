# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
from typing import Any

_gobind: Any

class GoClass:
    handle: int
