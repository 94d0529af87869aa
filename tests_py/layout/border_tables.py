# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What the rules of pyext know of other functions, and their exceptions, with reasons."""

from __future__ import annotations

GIL_TAKERS = {
    "Py_BEGIN_ALLOW_THREADS",
    "Py_UNBLOCK_THREADS",
    "PyEval_SaveThread",
    "cudago_gil_leave",
    "cudago_step_aside",
}

LIBC = {"offsetof", "malloc", "calloc", "realloc", "free", "memcpy", "memset", "memmove", "memcmp"}
LIBC |= {"snprintf", "isinf", "syscall", "getpid"}
LIBC |= {"atomic_load", "atomic_store", "atomic_exchange", "atomic_fetch_add", "atomic_fetch_sub"}
LIBC |= {"atomic_compare_exchange_strong"}
LIBC |= {"clock_gettime"}
LIBC |= {
    "atomic_load_explicit",
    "atomic_store_explicit",
    "atomic_fetch_add_explicit",
    "atomic_fetch_sub_explicit",
}

# Of CPython: what runs no Python and makes nothing that the garbage collector tracks, since that
# may be the time of a collection, with finalizers. Formatting an error does: see RAISERS.
PYTHON_QUIET = {
    "NEW_REF", "Py_IncRef", "Py_INCREF", "Py_TYPE", "PyType_IsSubtype",
    "PyLong_FromLong", "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong", "PyBool_FromLong",
    "PyTuple_Size", "PyTuple_GetItem", "PyList_Size", "PyList_GetItem",
    "PyBuffer_FillInfo", "PyErr_Occurred", "PyIndex_Check", "PyUnicode_FromString",
    "PyThread_get_thread_ident", "PyObject_Init", "PyWeakref_GetObject",
    "PyLong_CheckExact", "PyFloat_CheckExact", "Py_REFCNT",
}  # fmt: skip

# Of package dlpack's C core, which knows no Python; a release of a count only queues.
OURS_QUIET = {
    "cudago_cell_init", "cudago_cell_retain", "cudago_cell_release", "cudago_cells_pending",
    "cudago_is_compact", "cudago_c_strides", "cudago_product", "cudago_itemsize",
    "cudago_tensor_check",
    "cudago_dtype_name", "cudago_dtype_format", "cudago_dtype_typestr", "cudago_cell_last_id",
    "cudago_exports_open", "cudago_exported_note", "cudago_exported_find",
    "cudago_exported_forget_gone", "cudago_note_import",
}  # fmt: skip

# Of Go: what runs no Python and waits for nobody who may want the GIL.
GO_QUIET = {
    "cudagoLineProve", "cudagoProveAllAside", "cudagoLookAll", "cudagoLineJoin", "cudagoKeepUntil",
    "cudagoKeepLate",
    "cudagoKeepWatch", "cudagoKeepEvent",
    "cudagoStreamRelease", "cudagoResourceRelease", "cudagoPoolRelease", "cudagoStreamsOpen",
    "cudagoDefaultStreamsForget", "cudagoStreamPriority",
    "cudagoAllocError", "cudagoResultPersists", "cudagoMayFree",
    "cudagoHostAddress", "cudagoMemoryAllocated", "cudagoReachable", "cudagoResourcePeers",
    "cudagoCaptureBegin", "cudagoCaptureAdopt", "cudagoCaptureMemcpy", "cudagoCaptureBox",
    "cudagoCaptureMemset", "cudagoCaptureLaunch", "cudagoCaptureAlloc", "cudagoEventRecord",
    "cudagoCaptureHold", "cudagoExecLost", "cudagoGraphLost",
    "cudagoContextWaited", "cudagoGraphBox", "cudagoCaptureMemOp", "cudagoGraphMemOp",
    "cudagoGraphMemcpy", "cudagoGraphMemset", "cudagoGraphKernel", "cudagoGraphChild",
    "cudagoGraphChildOf",
    "cudagoGraphEvent", "cudagoGraphBody", "cudagoUpdateMemcpy", "cudagoUpdateMemset",
    "cudagoUpdateKernel", "cudagoUpdateHost", "cudagoGraphRetained", "cudagoExecRetained",
    "cudagoGraphParams", "cudagoExecParams", "cudagoRecord", "cudagoGraphCheck",
    "cudagoGraphRemove", "cudagoGraphEdge", "cudagoGraphNeighbors", "cudagoExecUpdate",
    "cudagoExecLaunchError",
    "cudagoCaptureHas", "cudagoKernelStores", "cudagoGraphSettle",
    "cudagoCaptureGraph", "cudagoCaptureExec",
    "cudagoUpdateMemOp", "cudagoUpdateBox",
    "cudagoCaptureSemaphore", "cudagoGraphSemaphore", "cudagoUpdateSemaphore",
    "cudagoSetChild", "cudagoUpdateChild", "cudagoUpdateEvent",
    "cudagoGraphExport", "cudagoGraphSite", "cudagoGraphSetSite", "cudagoExecSite",
    "cudagoExecOwn", "cudagoExecRetire", "cudagoExecEnable",
    "cudagoGraphRetain", "cudagoCaptureRetain",
    "cudagoStreamTryJoin", "cudagoRecordLock", "cudagoRecordUnlock",
}  # fmt: skip

# They raise, and do nothing else. Making an exception runs the garbage collector now and then.
RAISERS = {
    "PyErr_SetString", "PyErr_Format", "PyErr_NoMemory", "cudago_raise", "cudago_raise_closed",
    "cudago_raise_closed_as", "cudago_raise_closed_named", "cudago_raise_parameter_closed",
    "cudago_raise_lost", "cudago_raise_no_stream", "cudago_raise_no_cell", "cudago_raise_moved",
    "cudago_raise_update",
    "cudago_raise_expected", "cudago_raise_result", "cudago_raise_unusable", "cudago_launch_error",
    "cudago_raise_abandoned",
}  # fmt: skip

# Driver calls that wait for a thread that is stuck in a launch (RATIONALE, "locks and turns"), and
# Go functions that make them or take a lock that is held across them. While a Python callback may
# be what that thread waits for, they are called with the GIL released.
WAITS = {
    "cu.cuStreamWaitEvent", "cu.cuMemFreeAsync", "cudagoStreamDone", "cudagoStreamWaitEvent",
    "cudagoStreamWaitHandle", "cudagoStreamJoin", "cudagoStreamIdle", "cudago_event_record",
    "cudagoGraphMemoryFree", "cudagoKernelSetAttribute", "cudagoCaptureHost", "cudagoLaunchHost",
    "cudagoCaptureFree", "cudagoCaptureFreeLast",
    "cudagoMemcpyBox", "cudagoMemcpyBatch", "cudagoMemcpyPeer", "cudagoMemOp",
    "cudagoSemaphoreOp", "cudagoKernelOptIn", "cudagoVariable",
    "cu.cuEventRecord", "cu.cuLaunchKernelEx", "cu.cuMemcpyAsync", "cu.cuGraphLaunch",
    "cudagoEventRecord", "cudagoStreamsOrder", "cudagoLineProve", "cudagoProveAll",
    "cudagoLineExpose", "cudagoLineJoin", "cudagoLineMarked", "cudagoProveExposed",
    "cudagoProveAllAside",
    "cudagoCaptureEnd", "cudagoKernelBlocks", "cudagoKernelClusters",
    "cudagoMemset", "cudagoGraphInstantiate",
    "cudagoStreamNew", "cudagoStreamWrap", "cudagoEventNew", "cudagoEventForGood",
    "cudagoGreenNew", "cudagoGreenStream",
}  # fmt: skip

# What passes a gate, and which of its arguments is the function that it calls inside: others wait
# until that is over, so nothing may be raised there, which runs Python now and then.
GATES = {"cudago_update_gate": 1, "cudago_turn_take": 0}
# Counts that others wait for in the same way, and what ends one, other than taking it back.
COUNTS = {"inside", "busy", "waiting", "cudago_exclusive"}
COUNT_ENDS = {"leave"}

# file:function that is called inside of a gate: why it may do what others may not.
INSIDE: dict[str, str] = {
    "graph/update.c:call_inside": "for the test that a launch inside is an error that says so",
}

# Fields that close() clears.
CLEARED = {
    "StreamObject": {"s"},
    "EventObject": {"id", "h"},
    "GreenObject": {"id", "h"},
    "SemaphoreObject": {"id"},
    "ExternalObject": {"id"},
    "BufferObject": {"cell"},
    "TensorObject": {"cell", "theirs"},
    "ResourceObject": {"closed"},
    "GraphObject": {"id", "held", "capturing", "owner", "of"},
    "ExecObject": {"id", "x", "held"},
}

OFF = "switches the collector off, and runs no Python then"

# QUIET function:what it calls: why that does not break the rule.
QUIET_CALLS: dict[str, str] = {
    "add:cudago_drop_references": "the batch has the same references, so none of them is the last",
    "cudago_tensor_alloc:cudago_alloc_native": "of a type that takes no part in garbage collection",
    "cudago_site_find:of_caller": OFF,
    "cudago_site_utf8:utf8_of": OFF,
    "cudago_pack_number:PyLong_AsLongLongAndOverflow": "of an int itself",
    "cudago_pack_number:PyFloat_AsDouble": "of a float itself",
    "cudago_owned_number:PyTuple_SetItem": "what it replaces is an int or a float itself",
    "cudago_owned_change:PyTuple_SetItem": "what it replaces is counted, and so is dropped later",
    "cudago_slots_note:PyDict_Size": "of a dict itself",
    "cudago_slots_note:PyByteArray_AsString": "of a bytearray itself",
    "cudago_slots_note:PyList_SetItem": "what it replaces is None",
}

# They answer with what the caller does not hold, and what then does.
BORROWS = {
    "cudago_stream_now",
    "cudago_stream_to_hold",
    "cudago_buffer_now",
    "cudago_tensor_argument",
}
HOLDS = {"cudago_stream_retain", "cudago_cell_retain"}

TELLS = "the other half of an inline function: tells a check something"

# file:function that is called _now, but looks at nothing that could be closed.
NOW: dict[str, str] = {
    "border/check.c:cudago_note_site_now": TELLS,
    "border/check.c:cudago_forget_site_now": TELLS,
    "border/check.c:cudago_host_access_now": TELLS,
}

CLOSING = "closes: takes the field out, clears it, and releases it after that"

# file:function that reads such a field without being QUIET.
READERS: dict[str, str] = {
    "stream/stream.c:stream_release": CLOSING,
    "stream/event.c:event_close": CLOSING,
    "stream/event.c:event_dealloc": CLOSING,
    "stream/green.c:green_close": CLOSING,
    "stream/semaphore.c:semaphore_release": CLOSING,
    "stream/green.c:green_dealloc": CLOSING,
    "memory/external.c:external_close": CLOSING,
    "memory/external.c:external_dealloc": CLOSING,
    "memory/buffer.c:buffer_close": CLOSING,
    "memory/buffer.c:buffer_dealloc": CLOSING,
    "tensor/tensor.c:tensor_close": CLOSING,
    "tensor/tensor.c:tensor_dealloc": CLOSING,
    "graph/graph.c:graph_release": CLOSING,
    "graph/graph.c:graph_traverse": "the collector's visits run nothing",
    "graph/exec.c:exec_release": CLOSING,
    "graph/exec.c:exec_traverse": "the collector's visits run nothing",
    "graph/update.c:signalled": "looks only whether it is still the block that it is given",
    "graph/exec.c:wait_at_gate": "looks only whether it is still the block of its ticket",
    "graph/update.c:cudago_update_gate": "looks only whether it is still the block it began with",
    "graph/update.c:enter": (
        "a gate: looks again after each nap whether the block is still the one it began with"
    ),
}

# file:function that asks cudago_capturing without being QUIET.
LOOKS: dict[str, str] = {}

ASKED = "with the GIL only if cudago_keeps_gil allows it, which no callback does"
CAPTURED = "into a capture, where nothing is queued"
ALONE = "only while no callback is alive"

# file:function that makes a call that waits, but not always without the GIL.
WITH_GIL: dict[str, str] = {
    "kernel/launch.c:call_driver": ASKED,
    "kernel/copy.c:call_driver": ASKED,
    "graph/exec.c:call_driver": ASKED,
    "graph/recorded.c:call_launch": CAPTURED,
    "graph/recorded.c:call_copy": CAPTURED,
    "kernel/launch.c:order_theirs_away": "part of launch_away, which has released the GIL",
    "xla/run.c:launch_one": "of XLA's threads, which have no GIL",
    "stream/record.c:record_now": ALONE,
    "stream/record.c:wait_event_now": ALONE,
    "stream/record.c:cudago_event_record": ALONE,
    "memory/release.c:free_now": "its caller asks may_stick whether it could wait for a callback",
    "stream/order.c:order_now": ALONE,
    "stream/line.c:slow": ALONE,
    "stream/inflight_refs.c:mark_exposed": ALONE,
    "stream/inflight_refs.c:cover": ALONE,
    "stream/line.c:prove_now": "only while no thread that a callback holds up is in the driver",
    "stream/cover.c:record": "its callers are in cudago_gil_back, which takes the GIL back later",
    "stream/cover.c:cudago_covered_work": "its caller, cudago_gil_back, takes the GIL back later",
    "stream/uses.c:cudago_join_or_later": "released already if a callback is alive",
    "graph/exec.c:end": ALONE,
}

AT_EXIT = (
    "as weakref.finalize's, it works at exit too: asks cudago_forked and cudago_unusable by itself"
)

# file:function that Python calls, and that does not begin with CUDAGO_ENTER.
ENTRY: dict[str, str] = {
    "memory/buffer.c:buffer_get": (
        "host memory can be read at exit; Go is told of it for checks, which are off after a fork"
    ),
    "graph/capturing.c:capture_exit": (
        "cudago_capture_end enters, or finds that the interpreter has ended the capture"
    ),
    "graph/capture.c:cudago_invalidated": (
        "is part of raising an error, in which nothing is dropped; it looks whether it may enter Go"
    ),
    "finalizer/finalizer.c:finalizer_init": AT_EXIT,
    "finalizer/finalizer.c:finalizer_call": AT_EXIT,
    "finalizer/finalizer.c:finalizer_set_atexit": AT_EXIT,
    "stream/line.c:cudago_collect_prove": (
        "a hook of the collector, which must neither raise nor drop"
    ),
    "module/exit.c:cudago_shutdown": "is the exit",
}
