# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What gopy makes of ``pyext/api``: the cold half of the API, not for users.

``api`` and ``go`` import ``_gobind`` from here. It has no file of its own: the native module ``cudago._core`` holds it,
and hangs it on itself. So ``cudago`` does this before it imports ``api``::

    import sys
    from . import _core, _gopy
    _gopy._gobind = sys.modules["cudago._gopy._gobind"] = _core._gobind
    from ._gopy import api

It is done in Python, not by ``PyInit__core``, because that does not run again when an import that was
interrupted is tried anew. In a forked child its functions raise (fork.c).
"""
