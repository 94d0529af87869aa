# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The classes of graphs, of which the native module has to know before it makes objects of them.

``import cudago`` does not load them: what makes the first graph does, by way of this module.
"""

from .exec import GraphExec as GraphExec
from .exec_node import ExecNode as ExecNode
from .graph import Graph as Graph
from .node import Node as Node
from .slot import Slot as Slot
