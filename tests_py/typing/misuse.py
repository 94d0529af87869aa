# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Deliberate mistakes: every line that says E is an error, no other is. Read, never run.

After the E stand the code that mypy gives and the rule of pyright that finds it.
"""

import cudago as cu

dev = cu.Device()
s = dev.create_stream()
x = dev.allocate(4, stream=s)
t = x.view("f4")
kernel = cu.Program("").compile().get_kernel("k")
config = cu.LaunchConfig(grid=1, block=1)
graph = cu.Graph(dev)
node = graph.memset(x, 0)
step = graph.instantiate()


@cu.graph
def train(s: cu.Stream, a: float) -> None: ...


# Names that do not exist.
dev.properties.wrap_size  # E: attr-defined, reportAttributeAccessIssue
kernel.attributes.registers  # E: attr-defined, reportAttributeAccessIssue
kernel.attributes.register_count = 1  # E: misc, reportAttributeAccessIssue
kernel.attributes.max_shared_size = 1  # E: attr-defined, reportAttributeAccessIssue
x.nbyte  # E: attr-defined, reportAttributeAccessIssue
t.shap  # E: attr-defined, reportAttributeAccessIssue
s.synchronize()  # E: attr-defined, reportAttributeAccessIssue
graph.node  # E: attr-defined, reportAttributeAccessIssue
node.nane  # E: attr-defined, reportAttributeAccessIssue
cu.Buffers  # E: attr-defined, reportAttributeAccessIssue

# Streams that are missing, or not by name.
dev.allocate(4)  # E: call-arg, reportCallIssue
dev.allocate(4, s)  # E: call-arg, reportCallIssue
dev.allocate(4, stream=None)  # E: arg-type, reportArgumentType
cu.DeviceMemoryResource(dev).allocate(4)  # E: call-arg, reportCallIssue
cu.empty(4, "f4")  # E: call-arg, reportCallIssue
x.copy_from(b"1234")  # E: call-arg, reportCallIssue
x.copy_from(b"1234", stream=0)  # E: arg-type, reportArgumentType

# Operands that are none.
x.copy_from(1.5, stream=s)  # E: arg-type, reportArgumentType
x.copy_to("text", stream=s)  # E: arg-type, reportArgumentType
x.ptr * 2  # E: operator, reportOperatorIssue
x[0]  # E: index, reportArgumentType
t["x"]  # E: index, reportArgumentType

# Choices that there are not.
s.capture("local")  # E: arg-type, reportArgumentType
cu.init("cuda")  # E: arg-type, reportArgumentType
cu.Program("", kind="cuda")  # E: arg-type, reportArgumentType

# Launches.
cu.launch(s, 1, kernel)  # E: arg-type, reportArgumentType
cu.launch(s, config, x)  # E: arg-type, reportArgumentType
cu.launch(s, config, kernel, "text")  # E: arg-type, reportArgumentType
cu.LaunchConfig(grid=1.5, block=1)  # E: arg-type, reportArgumentType
cu.LaunchConfig(grid=1, blocks=1)  # E: call-arg, reportCallIssue

# Graphs.
graph.memset(x)  # E: call-arg, reportCallIssue
graph.memcpy(x, b"1234", nam="copy")  # E: call-arg, reportCallIssue
graph.callback(1)  # E: arg-type, reportArgumentType
step[0]  # E: index, reportArgumentType
step["fill"].update("foo")  # E: call-overload, reportArgumentType
step["fill"].update(config, x)  # E: call-overload, reportCallIssue
step.launch()  # E: call-arg, reportCallIssue
train(s, "2")  # E: arg-type, reportArgumentType
train(s)  # E: call-arg, reportCallIssue
cu.graph(5)  # E: call-overload, reportCallIssue
