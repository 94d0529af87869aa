// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange.h"

/* DLPack 1.3's sizes and offsets on 64-bit machines. */
#define HOLDS(what) _Static_assert(what, #what)
HOLDS(sizeof(DLDataType) == 4);
HOLDS(sizeof(DLTensor) == 48);
HOLDS(offsetof(DLTensor, device) == 8);
HOLDS(offsetof(DLTensor, ndim) == 16);
HOLDS(offsetof(DLTensor, dtype) == 20);
HOLDS(offsetof(DLTensor, shape) == 24);
HOLDS(offsetof(DLTensor, strides) == 32);
HOLDS(offsetof(DLTensor, byte_offset) == 40);
HOLDS(sizeof(DLManagedTensor) == 64);
HOLDS(offsetof(DLManagedTensor, manager_ctx) == 48);
HOLDS(offsetof(DLManagedTensor, deleter) == 56);
HOLDS(sizeof(DLManagedTensorVersioned) == 80);
HOLDS(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
HOLDS(offsetof(DLManagedTensorVersioned, deleter) == 16);
HOLDS(offsetof(DLManagedTensorVersioned, flags) == 24);
HOLDS(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
HOLDS(sizeof(DLPackExchangeAPI) == 56);
HOLDS(offsetof(DLPackExchangeAPI, managed_tensor_allocator) == 16);
HOLDS(offsetof(DLPackExchangeAPI, current_work_stream) == 48);

/* Bits from one element to the next, 0 for a type that is unknown to us. */
static int element_bits(DLDataType d, uint64_t flags) {
    int ok;
    switch (d.code) {
    case kDLInt:
    case kDLUInt: ok = d.bits == 8 || d.bits == 16 || d.bits == 32 || d.bits == 64; break;
    case kDLFloat: ok = d.bits == 16 || d.bits == 32 || d.bits == 64; break;
    case kDLBfloat: ok = d.bits == 16; break;
    case kDLComplex: ok = d.bits == 32 || d.bits == 64 || d.bits == 128; break;
    case kDLFloat6_e2m3fn:
    case kDLFloat6_e3m2fn: ok = d.bits == 6; break;
    case kDLFloat4_e2m1fn: ok = d.bits == 4; break;
    default: ok = d.bits == 8 && (d.code == kDLBool || (d.code >= kDLFloat8_e3m4 && d.code <= kDLFloat8_e8m0fnu));
    }
    /* PyTorch says two lanes for a byte with two FP4 numbers; nobody else uses lanes. */
    if (!ok || (d.lanes != 1 && !(d.code == kDLFloat4_e2m1fn && d.lanes == 2))) return 0;
    if (d.bits < 8 && (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)) return 8 * d.lanes;
    return d.bits * d.lanes;
}

int64_t cudago_itemsize(DLDataType d) {
    int bits = element_bits(d, 0);
    return bits % 8 ? 0 : bits / 8;
}

void cudago_c_strides(int ndim, const int64_t *shape, int64_t *strides) {
    int64_t next = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = next;
        next = cudago_product(next, shape[i] > 1 ? shape[i] : 1);
    }
}

int cudago_is_compact(int ndim, const int64_t *shape, const int64_t *strides) {
    int64_t next = 1;
    int compact = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0) return 1;
        if (shape[i] == 1) continue;
        if (strides[i] != next) compact = 0; /* go on: a later 0 makes it empty */
        if (__builtin_mul_overflow(next, shape[i], &next)) compact = 0;
    }
    return compact;
}

/* Walks the dimensions once: *n is the number of elements, -1 if that overflows, and *compact says whether they are
 * row-major and without gaps, unless there are none. 0 if a dimension is negative. */
static int walk(const DLTensor *t, int64_t *n, int *compact) {
    int empty = 0, overflows = 0;
    *n = *compact = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        int64_t size = t->shape[i];
        if (size < 0) return 0;
        empty |= size == 0;
        if (size != 1 && t->strides && t->strides[i] != *n) *compact = 0;
        overflows |= __builtin_mul_overflow(*n, size, n); /* of an empty tensor it may */
    }
    if (empty) *n = 0;
    else if (overflows) *n = -1;
    return 1;
}

/* Lowest and highest bit touched, from the first element. 0 if it overflows. */
static int reach(const DLTensor *t, int bits, int64_t *low, int64_t *high) {
    int64_t next = 1;
    *low = 0;
    *high = bits;
    for (int i = t->ndim - 1; i >= 0; i--) {
        int64_t span, stride = t->strides ? t->strides[i] : next;
        if (__builtin_mul_overflow(stride, t->shape[i] - 1, &span) ||
            __builtin_mul_overflow(span, (int64_t)bits, &span))
            return 0;
        int64_t *end = span < 0 ? low : high;
        if (__builtin_add_overflow(*end, span, end)) return 0;
        next *= t->shape[i]; /* cannot overflow: walk saw the product */
    }
    return 1;
}

const char *cudago_tensor_check(const DLTensor *t, uint64_t flags, cudago_extent *e) {
    if (t->ndim < 0 || t->ndim > CUDAGO_MAX_NDIM) return "the number of dimensions is not between 0 and 64";
    if (t->ndim > 0 && !t->shape) return "the shape is missing";
    int64_t size, low = 0, high;
    int compact;
    if (!walk(t, &size, &compact)) return "a dimension is negative";
    int bits = element_bits(t->dtype, flags);
    if (!bits && t->dtype.bits < 8)
        return "the element type is not one that cudago knows: of less than a byte are float4_e2m1fn, float6_e2m3fn and "
               "float6_e3m2fn";
    if (!bits) return "the element type is not one that cudago knows";
    switch (t->device.device_type) {
    case kDLCPU:
    case kDLCUDA:
    case kDLCUDAHost:
    case kDLCUDAManaged: break;
    default: return "the device is neither the host nor a CUDA device";
    }
    if (t->device.device_id < 0) return "the device number is negative";

    if (size < 0 || __builtin_mul_overflow(size, (int64_t)bits, &high)) return "the size overflows";
    *e = (cudago_extent){.itemsize = bits % 8 ? 0 : bits / 8, .size = size, .compact = !size || compact};
    if (size == 0) return NULL; /* data and strides mean nothing then */
    if (!t->data) return "the data pointer is missing";
    int64_t end;
    if (!compact && !reach(t, bits, &low, &high)) return "the strides overflow";
    if (low < -(INT64_MAX - 7)) return "the strides overflow";
    e->low = -((-low + 7) / 8);
    if (__builtin_add_overflow(high, (int64_t)7, &high)) return "the strides overflow";
    e->high = high / 8;
    int64_t first;
    if (t->byte_offset > INT64_MAX || __builtin_add_overflow((int64_t)(uintptr_t)t->data, (int64_t)t->byte_offset, &first))
        return "the byte offset overflows";
    if (first < 0 || first < -e->low || __builtin_add_overflow(first, e->high, &end))
        return "the strides leave the address space";
    return NULL;
}
