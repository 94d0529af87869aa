/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: from a Python object to an address, and to a launch, a copy or a fill. */
#pragma once
#include "tensor/tensor.h"

/* A kernel's parameter, as the packer needs it. */
typedef struct {
    uint8_t type; /* enum cudago_param */
    uint8_t range;  /* enum cudago_range */
    uint8_t access; /* enum cudago_access */
    uint8_t element; /* what a pointer points to, as cudago_element says; 0: not known */
    uint8_t takes;   /* enum cudago_takes */
    uint8_t unit;    /* bytes of what a pointer points to: of a whole vector; 0: not known */
    uint8_t mask;    /* bits that are 0 in an address of such */
    uint32_t offset, size;
} cudago_param;
enum cudago_param { PARAM_INT = 1,
                    PARAM_UINT,
                    PARAM_FLOAT,
                    PARAM_BYTES,
                    PARAM_BITS };

/* What an integer may be besides its size, as far as its type in C++ is known. PTX does not tell: NVRTC says .u32 for int. */
enum cudago_range { RANGE_ANY, /* of both signs */
                    RANGE_SIGNED,
                    RANGE_UNSIGNED,
                    RANGE_BOOL,
                    RANGE_ADDRESS };

/* What one of 8 bytes is for, as far as its type in C++ is known: PTX says .u64 of pointers, numbers and handles. */
enum cudago_takes { TAKES_ANY,
                    TAKES_MEMORY,
                    TAKES_NUMBER,
                    TAKES_TEXTURE,
                    TAKES_SURFACE,
                    TAKES_CONDITION };
static inline QUIET int cudago_takes_memory(const cudago_param *p) {
    return p->size == 8 && p->takes <= TAKES_MEMORY && (p->type == PARAM_UINT || p->type == PARAM_INT || p->type == PARAM_BITS);
}

/* The type of an element in a byte: its kind, without the sign, and its width. elements.py makes the same of C++. 0 for
 * bytes, which may hold anything; 255 for what no C++ type is known for, which is none of those. */
static inline QUIET uint8_t cudago_element(DLDataType d) {
    uint8_t kind = d.code == kDLUInt ? kDLInt : d.code, width = 0;
    if (d.lanes != 1 || (kind != kDLInt && kind != kDLFloat && kind != kDLBfloat && kind != kDLComplex && kind != kDLBool)) return 255;
    if (d.bits == 8 && kind == kDLInt) return 0;
    while (width < 5 && 4 << width != d.bits) width++;
    return (uint8_t)(kind << 4 | width);
}

/* Both are known, and differ. A vector of two floats is a complex number as well, which CUDA itself defines so. */
static inline QUIET int cudago_element_differs(const cudago_param *p, uint8_t element) {
    if (!p->element || !element || p->element == element) return 0;
    int width = p->element & 15, is_vector = p->element >> 4 == kDLFloat && p->unit > 1 << (width - 1);
    return !is_vector || element != (kDLComplex << 4 | (width + 1));
}

/* Can memory be what the pointer points to: is it aligned, and one element at least, or none? */
static inline QUIET int cudago_is_place(const cudago_param *p, uint64_t address, uint64_t nbytes) {
    return !(address & p->mask) && (nbytes >= p->unit || !nbytes);
}

/* A cell's: of a variable in constant memory, as far as PTX tells, which only copies and fills change. A bit that no other room
 * uses: memory.h. */
enum { CUDAGO_CELL_CONSTANT = 1u << 22 };
static inline QUIET int cudago_is_constant(const cudago_cell *cell) { return cell && cell->flags & CUDAGO_CELL_CONSTANT; }

/* Does the kernel store through a parameter? Found out when it is first given read-only memory. */
enum cudago_access { ACCESS_NOT_ASKED,
                     ACCESS_READS,
                     ACCESS_MAY_STORE,
                     ACCESS_UNKNOWN };

/* A kernel on one device. C memory owned by Go. */
typedef struct cudago_kernel {
    uintptr_t f;      /* CUfunction */
    uintptr_t ctx;
    int32_t device;
    int32_t n;        /* parameters */
    uint32_t size;    /* bytes of all parameters */
    uint32_t max_threads;
    uint64_t id;         /* Go's handle */
    uint32_t limits[6];  /* grid x y z, block x y z */
    uint32_t max_shared; /* bytes of dynamic shared memory: what was asked for, see cudago_opt_in */
    uint32_t local_size; /* bytes of local memory of each thread */
    int32_t shared_set;  /* the user has set max_shared */
    int32_t pageable;    /* the device reads pageable host memory */
    int32_t programmatic; /* the device has programmatic launches */
    uint32_t generation;
    struct cudago_kernel *before; /* of the previous generation; a launch may still be reading it */
    cudago_param params[];
} cudago_kernel;
#define CUDAGO_MAX_PARAMS 1024

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t code; /* Go's handle of the object code */
    PyObject *name;
    PyObject *owner; /* the Handle of the ObjectCode */
    PyObject *elements; /* bytes, for each device: params[].element or range, and unit, of each; NULL: none is known */
    PyObject *names;    /* tuple: of the parameters, interned, as keyword arguments; NULL: nobody has asked for them */
    PyObject **by_name; /* what is in it, borrowed: updates look here, and a call for each costs more than all else */
    Py_ssize_t n_names;
    PyObject *work; /* str: what a kernel of cudago's own does, whose arguments describe memory together (_kernel/work.py); or NULL */
    int counted;    /* the last argument is the number of elements of all tensors, the one before the memory that is written */
    cudago_kernel *on[CUDAGO_MAX_DEVICES];
} KernelObject;

typedef struct {
    PyObject_HEAD
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_memory;
    int32_t cooperative, has_priority, priority, programmatic;
    int32_t trigger_at_block_start;
    EventObject *programmatic_event, *launch_completion_event; /* that launches record, counted; or NULL */
} ConfigObject;

/* What a configuration says, for Go. */
typedef struct {
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_memory;
    int32_t cooperative, has_priority, priority, programmatic;
} cudago_shape;
/* So that Go can read one in a ConfigObject. */
_Static_assert(sizeof(ConfigObject) - offsetof(ConfigObject, grid) >= sizeof(cudago_shape) &&
                   offsetof(ConfigObject, programmatic) - offsetof(ConfigObject, grid) == offsetof(cudago_shape, programmatic),
               "a ConfigObject ends with a shape");
static inline QUIET int cudago_records_events(const ConfigObject *c) { return c->programmatic_event || c->launch_completion_event; }
/* Nodes of graphs, and what else is no launch into a stream, record none: -1 with ValueError if the configuration has some.
 * what: "a kernel node". */
int cudago_refuse_events(const ConfigObject *c, const char *what);
PyObject *cudago_config_without_events(ConfigObject *c); /* a new reference, or NULL */
static inline QUIET cudago_shape cudago_shape_of(const ConfigObject *c) {
    cudago_shape s = {.shared_memory = c->shared_memory,
                      .cooperative = c->cooperative,
                      .has_priority = c->has_priority,
                      .priority = c->priority,
                      .programmatic = c->programmatic};
    memcpy(s.grid, c->grid, sizeof s.grid);
    memcpy(s.block, c->block, sizeof s.block);
    memcpy(s.cluster, c->cluster, sizeof s.cluster);
    return s;
}

/* One object that a graph or a launch in flight keeps: the object passed in, and what keeps its bytes in place. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *object;    /* the object that the user passed */
    cudago_cell *cell;   /* the cell of a Buffer, Tensor or foreign tensor */
    cudago_cell *theirs; /* of a foreign tensor over memory of ours, in addition to its cell; else NULL */
    cudago_storage_words storage; /* what has the cell's memory, if that can be given back before the cell */
    PyObject *weak_array; /* a weak reference to the array of NumPy whose memory it is, which keeps that from being resized, or NULL */
    PyObject *export;    /* a memoryview of ours that holds the buffer export of a host object, or NULL */
    uint64_t address, nbytes;
    int32_t host;        /* pageable or pinned host memory */
    int32_t pageable;    /* the driver does not know the memory */
    int32_t device;      /* -1: any */
    int32_t readonly;    /* whoever gave it to us does not allow writing */
    int32_t array;       /* the address is the handle of an array */
    int32_t allowed;     /* AllowHost was called */
    int32_t index;       /* the index of a kernel's argument */
    int32_t at;          /* of a pointer in a struct: bytes from the struct's start; otherwise -1 */
    int32_t interface;   /* made from a __cuda_array_interface__ */
    int32_t at_rest;     /* of a library that says it works on the host only: no stream has work on it */
    uint8_t described;   /* it counts among the users of the descriptor that object is */
    uint8_t element;     /* of a tensor: cudago_element; 0: not known */
    uintptr_t stream;    /* the interface's: pending work is queued there; 0: none is */
    void *call;          /* the record of a Python callable, from cudago_call_new */
    cudago_imports *of;  /* the interface's: counts it; else NULL */
} OperandObject;

/* What a kernel is handed instead of an address, with a count of the memory that it describes: a tensor map. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *tensor; /* that it was made of */
    PyObject *facts;  /* what it says, a tuple for the Python face */
    cudago_cell *cell;
    uint64_t address, nbytes; /* the memory that it describes */
    int32_t device;           /* -1: any */
    int32_t home;             /* whose kernels can use a texture or a surface: the driver's object is of one context */
    int32_t readonly;
    uint32_t size;            /* of the argument: 128, or 8 of a texture's handle */
    uint64_t texture;         /* Go's number of it, a texture or a surface, or 0 */
    uint32_t generation;      /* of home: a reset destroys the driver's object, also where the memory stays */
    int32_t is_surface;
    int32_t closed;
    uint32_t users;           /* Operands, which keep what it has open when it is closed */
    uint8_t bytes[128];
} DescriptorObject;

/* What cuTensorMapEncodeTiled is told, but for the address; or what its sisters for columns are, without a box. */
enum { TILES_BOX,
       TILES_COLUMNS,
       TILES_WIDE };
typedef struct {
    int32_t type, interleave, swizzle, promotion, beyond, rank;
    uint64_t dims[5], strides[4];
    uint32_t box[5], steps[5];
    int32_t columns, lower[3], upper[3], mode; /* columns: TILES_BOX and others; the mode is that of wide ones */
    uint32_t channels, pixels;
} cudago_tiles;

/* What cuTexObjectCreate is told, but for the address. */
typedef struct {
    uint32_t format, channels;
    uint64_t width, height, pitch;
    int32_t address[3], linear, normalized, integer, srgb, seamless;
    float border[4];
    int32_t array;     /* the address is an array's handle, and format and sizes are the array's */
    int32_t mipmapped; /* that of an array with levels, of which the rest tells */
    int32_t between;
    float bias, least, greatest;
} cudago_texels;

/* descriptor.c: a new descriptor of a Python class, over nothing yet; NULL with an exception. */
DescriptorObject *cudago_descriptor_alloc(PyObject *cls, PyObject *of, PyObject *facts);
int cudago_make_texture(DescriptorObject *d, cudago_texels *texels);
QUIET int cudago_descriptor_open(const DescriptorObject *d); /* -1 with ClosedError if it is not */
void cudago_descriptor_left(DescriptorObject *d);            /* by an Operand */
/* A new one that says the same, over a cell for graphs, of which it takes over the caller's count. NULL with
 * an exception, and the count is given back. */
PyObject *cudago_descriptor_over(const DescriptorObject *d, cudago_cell *cell);

/* operand.c: the only way from a Python object to an address and to what keeps it valid. */
enum { OPERAND_WRITABLE = 1,
       OPERAND_KERNEL = 2,
       OPERAND_BOX = 4 }; /* it may be an array */
enum { SIDE_UNIFIED,
       SIDE_HOST,
       SIDE_ARRAY }; /* what the address of one side of a copy is */
static inline QUIET int32_t cudago_side(const OperandObject *o) { return o->array ? SIDE_ARRAY : o->host ? SIDE_HOST
                                                                                                         : SIDE_UNIFIED; }
/* Do the sides of a copy overlap? Its bytes are moved in any order, so what is read may have been written. The same memory on both
 * sides is no harm. */
static inline QUIET int cudago_overlap(uint64_t dst, uint64_t src, uint64_t size) { return dst < src + size && src < dst + size && dst != src; }
QUIET int cudago_raise_overlap(const char *where, uint64_t dst, uint64_t src, uint64_t size);
void cudago_operand_allow(OperandObject *o); /* for kernels: AllowHost, once */
OperandObject *cudago_operand(PyObject *object, int flags, const char *what);
PyObject *cudago_operand_as(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* Where it is, as the driver's copies tell memory apart. */
enum cudago_place_of { PLACE_DEVICE,
                       PLACE_HOST,
                       PLACE_MANAGED };
QUIET enum cudago_place_of cudago_operand_place(const OperandObject *o);
QUIET const char *cudago_operand_kind(const OperandObject *o); /* a word, as Operand.kind */
/* May a copy of it outlast the call, without anything but the operand to keep the memory? */
int cudago_outlasts(const OperandObject *o);
/* Is the memory still there? A reset of its device destroys it no matter who holds it. -1 with ClosedError. */
QUIET int cudago_operand_now(const OperandObject *o);
extern int64_t cudago_operands_stored; /* how many have a storage; guarded by the GIL */
static inline QUIET int cudago_operand_moved(const OperandObject *o) { return o->storage.data && cudago_storage_moved(&o->storage, o->cell); }
static inline QUIET int cudago_operand_lost(const OperandObject *o) {
    return o->cell && (cudago_cell_lost(o->cell) || cudago_operand_moved(o));
}
int cudago_raise_moved(const char *what); /* ClosedError "WHAT is gone: ..."; returns -1 */

/* lent.c: an argument that its library lends for the call, as PyTorch does: no Operand is made of it. */
typedef struct {
    cudago_cell *cell; /* of memory of ours that came back, with a count; NULL: the memory is theirs */
    PyObject *storage; /* what their memory is in, counted; NULL: it is the object's */
    void *data;
    uint16_t index;
} cudago_lent;
/* A stream of another library on another device. */
typedef struct {
    uintptr_t h;
    int32_t device;
} cudago_far;
enum { CUDAGO_MAX_LENT = 64,
       CUDAGO_FEW_OWN = 8 };

/* pack.c: the arguments of a launch or a kernel node. First comes all that can run Python, then the addresses of our
 * own objects. */
typedef struct { /* first what every call touches, then the lists, of which most calls touch only the start */
    KernelObject *kernel;
    cudago_kernel *k;
    PyObject *const *args;
    uint8_t *values;       /* k->size bytes, into which parameters are written */
    PyObject *keep;        /* list of Operands for what other libraries and the host own, or NULL */
    OperandObject **own;   /* Operands of our own objects, for a graph: one for each of native; NULL if not made */
    PyObject *like;        /* the record of another node of the same graph, whose Operands will do again, borrowed; or NULL */
    PyObject *condition;   /* the first argument that is a condition of a graph, borrowed; or NULL */
    PyObject *record;      /* for a graph: a tuple of the kernel, the configuration, and for each argument its Operand or
                              its value, which can be packed again; NULL if not made */
    int natives, index;    /* index: of the argument being packed */
    int n_used, n_lent, n_theirs, n_far;
    int n_kept; /* how many references lent and native of other libraries are */
    int ran;    /* other code may have run since something was lent */
    DLDevice asked;        /* of the objects of asked_type, whose library has told its stream */
    PyTypeObject *asked_type; /* borrowed from an argument; NULL: none */
    int inside; /* how many of keep are pointers in structs */
    OperandObject *few_own[CUDAGO_FEW_OWN];
    uint16_t native[CUDAGO_MAX_PARAMS]; /* arguments that are our own objects, in order: their addresses are read last */
    void *params[CUDAGO_MAX_PARAMS];
    cudago_cell *used[CUDAGO_MAX_PARAMS]; /* cells of native, then those of lent */
    cudago_lent lent[CUDAGO_MAX_LENT];
    uintptr_t theirs[CUDAGO_MAX_PARAMS]; /* other libraries' streams, whose work on their objects is waited for */
    cudago_far far[CUDAGO_MAX_PARAMS];   /* the same of other devices than the kernel's */
} cudago_packing;
/* Evaluates and checks args; runs Python. values has room for k->size bytes. On failure -1 with an exception, and
 * nothing to free. */
/* Packs an argument that is lent. 1 if it is none, or not of the simplest kind: then it is for cudago_operand. */
int cudago_pack_lent(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
/* Is everything lent still as it was? -1 with BufferError. */
int cudago_lent_unchanged(cudago_packing *p);
int cudago_lent_own(cudago_packing *p); /* makes Operands of them, in keep, for a graph. -1 with an exception */
void cudago_lent_free(cudago_packing *p);
int cudago_pack_memory(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to); /* as an Operand, into keep */
/* Puts own references to all that is kept until a launch has ended into refs, which has room for n_kept and keep. */
QUIET size_t cudago_kept(const cudago_packing *p, uintptr_t *refs);

PyObject *cudago_set_condition(PyObject *module, PyObject *cls);
QUIET int cudago_is_condition(PyObject *arg);
const char *cudago_parameter_name(int index); /* "parameter 1", until the next call */
int cudago_pack(cudago_packing *p, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, Py_ssize_t n, uint8_t *values);
/* The same for n of the parameters; args is by their indices, as ever. */
int cudago_pack_some(cudago_packing *p, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, const uint16_t *which, int n,
                     uint8_t *values);
/* number.c: a number, as an integer or a floating-point number or as what the parameter is. The first two take what is one; the
 * third what is_number says, or has item() or value. -1 with an exception that names the parameter. */
int cudago_pack_int(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
int cudago_pack_float(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
int cudago_pack_scalar(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
int cudago_is_number(PyObject *arg); /* of what has the buffer protocol */
/* A parameter that C++ calls __half or __nv_bfloat16, which to PTX is a struct. */
static inline QUIET int cudago_is_small(const cudago_param *p) { return p->size == 2 && p->element && p->type >= PARAM_BYTES; }
/* A Python number as a struct: of such a parameter, or a complex number as two floats or doubles. */
int cudago_pack_small(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
/* The other of the two types? -1 with TypeError */
int cudago_wrong_small(cudago_packing *p, const cudago_param *param, PyObject *arg);

/* refused.c: raise, and return -1 */
int cudago_wrong_argument(cudago_packing *p, const cudago_param *param, PyObject *arg);
int cudago_wrong_element(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t element);
/* For what cudago_is_place refuses; nbytes: 0 of an address without memory. */
int cudago_wrong_place(cudago_packing *p, const cudago_param *param, PyObject *arg, uint64_t address, uint64_t nbytes);
int cudago_wrong_count(KernelObject *kernel, int want, Py_ssize_t got);
int cudago_wrong_layout(cudago_packing *p);   /* of the exception that is set, for p->index */
/* Adds the parameter's name to the error that is set, if that begins with the number and the name is known; returns -1. */
int cudago_tell_parameter(KernelObject *kernel);
/* Says so of an array of the host, if that is what is wrong. kernel: its name, or NULL. */
int cudago_wrong_host_layout(PyObject *arg, const char *what, PyObject *kernel);
int cudago_raise_parameter_closed(cudago_packing *p); /* the same */
/* Writes an int or a float itself, as nearly all scalars are, if the parameter takes it. 0: it is none, or is refused;
 * nothing is raised. */
QUIET int cudago_pack_number(const cudago_param *param, PyObject *arg, uint8_t *to);
/* struct.c: a struct by value, and the memory that pointers in it are to. */
int cudago_pack_struct(cudago_packing *p, const cudago_param *param, PyObject *arg, uint8_t *to);
/* What a record has of one with such memory: a tuple of its bytes and the Operands. A new reference, or NULL with an exception. */
PyObject *cudago_struct_recorded(const cudago_packing *p, int index);
/* Puts an Operand into keep, if a kernel may use its memory in p->index. -1 with an exception */
int cudago_pack_keep(cudago_packing *p, OperandObject *o);
int cudago_pack_operands(cudago_packing *p); /* own.c: makes own; runs Python. -1 with an exception */
PyObject *cudago_pack_recorded(cudago_packing *p, int index); /* then: what the record has of an argument, a new reference */
int cudago_pack_own(cudago_packing *p, PyObject *config); /* own.c: makes own and record; runs Python. -1 with an exception */
/* Are all of them values, so that there is nothing to keep and no address to read? */
static inline QUIET int cudago_packed_values(const cudago_packing *p) { return !p->natives && !p->keep && !p->n_lent; }
QUIET int cudago_pack_now(cudago_packing *p);   /* reads the addresses of our own objects, which must be open */
/* The Operand whose memory is lost by now, although it was not when the packing was made; NULL: none is. Raises nothing. */
QUIET const OperandObject *cudago_pack_lost(const cudago_packing *p);
void cudago_pack_free(cudago_packing *p);
/* A configuration, as the driver reads it; its attributes stay where a points to. Needs no GIL: nothing changes o. */
enum { CUDAGO_MAX_ATTRIBUTES = 6 };
QUIET void cudago_fill_config(CUlaunchConfig *c, CUlaunchAttribute *a, const ConfigObject *o, uintptr_t stream);
/* Raises what the driver refused, with what it was asked to run. Returns -1. */
int cudago_launch_error(const char *operation, KernelObject *kernel, const cudago_kernel *k, const cudago_shape *s, int32_t code);

/* The parameter with an interned name, by which an update can change it; -1: there is none, or the names are not known. */
QUIET int cudago_kernel_named(const KernelObject *kernel, const cudago_kernel *k, PyObject *name);
QUIET enum cudago_access cudago_kernel_access(cudago_kernel *k, int index); /* of the parameter with this index */
cudago_kernel *cudago_kernel_on(KernelObject *kernel, int32_t device);
/* Asks the driver for more dynamic shared memory than every device has. *most: how much there may be. -1 with an
 * exception; 0 too if there is not so much, or the user has set a limit: k->max_shared tells. */
int cudago_opt_in(cudago_kernel *k, uint32_t bytes, uint32_t *most);
int cudago_check_config(ConfigObject *c, cudago_kernel *k);
/* The stream whose work must come before we use what another library gave us, or 0. Runs code of that library. */
int cudago_theirs(OperandObject *o, int32_t device, uintptr_t *stream, int32_t *at); /* at: the device of that */

/* copy.c */
int cudago_fill_value(PyObject *value, uint32_t *out, uint32_t *width);        /* runs Python */
/* After a fill has failed: of ordinary host memory, which other libraries lend, the driver has said no more than that an
 * argument is invalid, and the exception becomes a BufferError. Returns -1. */
int cudago_fill_failed(int lent, uint64_t address, const char *what);
QUIET int cudago_may_be_lent(const cudago_cell *cell); /* NULL: the memory has none */
QUIET int cudago_fill_fits(uint32_t width, uint64_t address, uint64_t size);   /* -1 with ValueError */

/* box.c: rows of bytes that both sides have at pitches of their own. */
typedef struct {
    uint64_t width, rows, slices;   /* bytes of a row, rows of a slice, slices; none is 0 */
    uint64_t dst_pitch, dst_height; /* bytes from one row to the next, rows from one slice to the next */
    uint64_t src_pitch, src_height;
} cudago_box;
int cudago_read_box(PyObject *numbers, cudago_box *box); /* a tuple of the seven; -1 with an exception */
/* Are all rows inside the memory of both sides? -1 with ValueError. */
QUIET int cudago_box_fits(const cudago_box *box, const OperandObject *dst, const OperandObject *src);

/* batch.c: one of several copies. */
typedef struct {
    uint64_t dst, src, size;
    int32_t across;   /* between memory of devices, one of which is not the stream's: they need no access */
    int32_t to, from; /* these devices */
} cudago_copy;

/* memop.c: a write of a value, or a wait for one. */
typedef struct {
    uint64_t value;
    uint32_t width;
    int32_t waits, condition; /* condition: CU_STREAM_WAIT_VALUE_GEQ, ... */
} cudago_memop;
/* The value as it is given: an int of any sign, of at most 64 bits. */
typedef struct {
    uint64_t bits;
    int negative;
} cudago_memop_value;
int cudago_memop_value_of(PyObject *value, cudago_memop_value *out); /* runs Python; -1 with an exception */
OperandObject *cudago_memop_operand(PyObject *object, int waits);    /* NULL with an exception */
/* Is the operand open, and of a size and an alignment that the driver takes? Completes m. -1 with an exception. */
QUIET int cudago_memop_fits(const OperandObject *o, const cudago_memop_value *value, cudago_memop *m);

/* What happens to work on a stream that is capturing: the graph that it is recorded into keeps its operands. The room
 * of graphs fills this in, with QUIET functions. */
typedef struct {
    int (*memcpy)(cudago_stream *s, OperandObject *dst, OperandObject *src, uint64_t size);
    int (*box)(cudago_stream *s, OperandObject *dst, OperandObject *src, const cudago_box *box);
    int (*memset)(cudago_stream *s, OperandObject *dst, uint32_t value, uint32_t width, uint64_t count);
    int (*memop)(cudago_stream *s, OperandObject *at, const cudago_memop *m);
    int (*semaphore)(cudago_stream *s, SemaphoreObject *sem, uint64_t value, int32_t waits);
    int (*launch)(cudago_stream *s, CUlaunchConfig *config, ConfigObject *c, cudago_packing *p);
    int (*last)(cudago_stream *s, PyObject **record); /* of the latest launch, a new reference; NULL: not known. Returns 0 */
} cudago_recorder;
extern cudago_recorder cudago_record;
/* slot.c: the public class of operands with a name. */
PyObject *cudago_set_slot(PyObject *module, PyObject *cls);
PyObject *cudago_no_slot(PyObject *module, PyObject *const *args, Py_ssize_t n);
QUIET int cudago_is_slot(PyObject *o);
int cudago_refuse_slot(PyObject *o, const char *what); /* -1 with TypeError if it is one */

/* --- what room.c adds to the module, and types -------------------------------------------------------------------- */

PyObject *cudago_compile(PyObject *module, PyObject *args);
PyObject *cudago_link(PyObject *module, PyObject *args);
PyObject *cudago_handle_new(uint64_t id); /* takes over the code; code.c */
PyObject *cudago_code_cache(PyObject *module, PyObject *args);
PyObject *cudago_code_from(PyObject *module, PyObject *args);
PyObject *cudago_code_from_state(PyObject *module, PyObject *args);
PyObject *cudago_code_data(PyObject *module, PyObject *args);
PyObject *cudago_code_variable(PyObject *module, PyObject *args);
PyObject *cudago_kernel_new(PyObject *module, PyObject *args);
PyObject *cudago_config_new(PyObject *module, PyObject *args);
PyObject *cudago_tensor_map_new(PyObject *module, PyObject *args);
PyObject *cudago_copy_batch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_texture_new(PyObject *module, PyObject *args);
PyObject *cudago_array_texture_new(PyObject *module, PyObject *args);
PyObject *cudago_surface_new(PyObject *module, PyObject *args);
PyObject *cudago_copy_box(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_signal(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_memop(PyObject *module, PyObject *const *args, Py_ssize_t n);
/* A tuple of arguments in the order of the parameters; from a sequence, of which the last have names. NULL with an exception. */
PyObject *cudago_arranged(KernelObject *kernel, PyObject *all, PyObject *names);
PyObject *cudago_launch(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
extern PyMethodDef cudago_buffer_copies[]; /* methods of Buffer: copy.c */
extern PyType_Spec cudago_code_spec, cudago_kernel_spec, cudago_config_spec, cudago_operand_spec, cudago_descriptor_spec;
int cudago_kernel_room(PyObject *module); /* -1 with an exception */
