# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations that are measured, and the kernel that all libraries launch."""

LAUNCH = "launch a kernel, 3 arguments"
GRAPH = {
    1: "launch a graph, 1 node",
    10: "launch a graph, 10 nodes",
    100: "launch a graph, 100 nodes",
}
ADD_NODE = "add a kernel node"
ADD_COPY = "add a copy node"
CAPTURE = "capture a kernel, of 1,000 in one capture"
BIND = "bind a slot of an executable"
BIND_COPY = "bind a slot of a copy"
UPDATE = "update an argument of a kernel in an executable"
UPDATE_NAMED = "the same by keyword"
UPDATE_COPY = "update the source of a copy in an executable"
UPDATE_ALL = "update all of a kernel in an executable"
BOUND = "call a bound launch"
REPLAY = "replay a function that is a graph"
BUILD = "build, instantiate and drop a graph, per node of 10,000"
ALLOC = "allocate and free 1 KiB"
COPY = "copy 4 KiB, pinned to device"
RECORD = "record an event"
WAIT = "wait for an idle stream"
WAIT_GRAPH = "launch a graph of 100 nodes, and wait for it"
LAUNCH_TORCH = "launch with a torch tensor"
LAUNCH_THERE = "launch in PyTorch's stream"
LAUNCH_TORCH_THERE = "launch with a torch tensor in PyTorch's stream"
IMPORT = "import a torch tensor"
EXPORT = "export to torch"
IMPORT_OWN = "from_dlpack of a tensor of one's own"
CAPSULE = "__dlpack__, nothing to order"
CAPSULE_ORDERED = "__dlpack__ for another stream, one event pair"
TO_NUMPY = "np.from_dlpack of pinned memory"
SLICE = "slice a buffer"
POINTER = "add to a pointer"

# Of a matrix of MATRIX x MATRIX floats, until all is computed.
AXPY = "compute a x + y of a matrix of 256 MiB"
SUM = "sum it"
SUM_ROWS = "sum it along the last axis"
SUM_COLUMNS = "sum it along the first axis"
SUM_STEPS = "sum each second column of it"
COPY_STEPS = "copy each second column of it"
COPY_TURNED = "copy it transposed"
TO_HALF = "convert it to float16"
BIG = (AXPY, SUM, SUM_ROWS, SUM_COLUMNS, SUM_STEPS, COPY_STEPS, COPY_TURNED, TO_HALF)

ALL = (
    LAUNCH,
    *GRAPH.values(),
    ADD_NODE,
    ADD_COPY,
    CAPTURE,
    BUILD,
    BIND,
    BIND_COPY,
    UPDATE,
    UPDATE_NAMED,
    UPDATE_COPY,
    UPDATE_ALL,
    BOUND,
    REPLAY,
    ALLOC,
    COPY,
    RECORD,
    WAIT,
    WAIT_GRAPH,
    LAUNCH_TORCH,
    LAUNCH_THERE,
    LAUNCH_TORCH_THERE,
    IMPORT,
    EXPORT,
    IMPORT_OWN,
    CAPSULE,
    CAPSULE_ORDERED,
    TO_NUMPY,
    SLICE,
    POINTER,
    *BIG,
)

BLOCK = 32
ALLOC_SIZE = 1 << 10
COPY_SIZE = 4 << 10
BUILD_NODES = 10_000
MATRIX = 8192

# Calls that put nothing into a stream come in longer batches: no queue fills, and what the case
# before has left in the processor's caches counts less.
QUEUES_NOTHING = {
    ADD_NODE,
    ADD_COPY,
    CAPTURE,
    BIND,
    BIND_COPY,
    UPDATE,
    UPDATE_NAMED,
    UPDATE_COPY,
    UPDATE_ALL,
    WAIT,
    IMPORT,
    EXPORT,
    IMPORT_OWN,
    CAPSULE,
    TO_NUMPY,
    SLICE,
    POINTER,
}

# The kernel does nothing for n >= 0, so that calls and not the device are measured.
KERNEL = "touch"
SOURCE = r"""
extern "C" __global__ void touch(const float* x, float* y, int n) {
    if (n < 0) y[0] = x[0];
}
"""

# The same as PTX, of a version that every supported driver takes.
PTX = r"""
.version 7.0
.target sm_75
.address_size 64

.visible .entry touch(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;

    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    setp.gt.s32 %p1, %r1, -1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    ld.global.f32 %f1, [%rd3];
    st.global.f32 [%rd4], %f1;
DONE:
    ret;
}
"""


def calls_per_batch(operation: str) -> int:
    """Return how often an operation is done in a batch; of `BUILD` the nodes.

    What is launched stays far below the launches that a driver queues before it blocks.
    """
    if operation == BUILD:
        return BUILD_NODES
    if operation in QUEUES_NOTHING:
        return 1000
    if operation in BIG:
        return 5
    return 50 if operation == GRAPH[100] else 100
