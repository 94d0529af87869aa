# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Objects and values for `cudago.jax_ops`: what an operator's function gets while JAX traces it.

JAX itself is not there: tracing asks it for the types of arrays only.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cudago import jax_ops

from .surface import Parameter

if TYPE_CHECKING:
    from .world import World

N = 64  # as in world.py, which imports this


class _NoArray:
    """Stands for JAX's class of arrays, which nothing here is an instance of."""


JAX = SimpleNamespace(numpy=np, Array=_NoArray)


def _stream(_: World) -> jax_ops.TracedStream:
    return jax_ops.TracedStream(JAX, "mine::add", True, (0,))


MAKERS: dict[str, Any] = {
    "traced_stream": _stream,
    "traced_array": lambda w: w.get("traced_stream").empty(N, "int32"),
    "residuals": lambda w: jax_ops.Residuals((w.get("array"),), (w.get("array"),), (None,)),
}
RECEIVERS = {
    "jax_ops.Residuals": "residuals",
    "jax_ops.TracedArray": "traced_array",
    "jax_ops.TracedStream": "traced_stream",
}


def _thing(name: str) -> Any:
    return lambda w: w.get(name)


def _plain(*values: Any) -> list[Any]:
    return [lambda w, v=v: v for v in values]


VALUES: dict[str, list[Any]] = {
    "jax": _plain(JAX),
    "simulated": _plain(True),
    "devices": _plain((0,)),
    "of": [_thing("traced_stream")],
    "backward": [lambda w: lambda ctx, *gradients: None],
    "saved_arrays": _plain(()),
    "saved_results": _plain(()),
    "arguments": _plain(()),
    "jax_ops.TracedStream.empty.shape": _plain(N, (8, 8), np.int64(N)),
    "jax_ops.TracedStream.empty_like.x": [_thing("traced_array")],
    "jax_ops.TracedStream.launch.y": [_thing("traced_array"), _thing("buffer")],
}
_ADD = (Parameter("y"), Parameter("value"), Parameter("n"))
_NAMED = (Parameter("value", True), Parameter("n", True))
_LAUNCH = (Parameter("config"), Parameter("kernel"))
EXPANSIONS = {
    "jax_ops.TracedStream.launch": {
        "add": ("traced_stream", (*_LAUNCH, *_ADD)),
        "named": ("traced_stream", (*_LAUNCH, Parameter("y"), *_NAMED)),
    },
}
