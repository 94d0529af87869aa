# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs. ``import cudago`` does not load them: what makes the first one does.

The native module has to know all of their classes before it makes an object of one.
"""

from . import exec as exec
from . import graph as graph
from . import node as node
from . import slot as slot
