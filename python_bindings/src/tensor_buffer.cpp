// SPDX-License-Identifier: Apache-2.0
// The buffer protocol in both directions: how NumPy, memoryview and array.array share memory with
// us.
#include <bit>
#include <cstring>
#include <new>

#include "composed.hpp"
#include "convert.hpp"
#include "errors.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"
#include "tensor_type.hpp"

namespace tenon::python {
namespace {

// -- out ------------------------------------------------------------------------------------------

// Formats of the struct module; NULL: Python has no name for such elements.
const char* buffer_format(int32_t dtype) {
  static constexpr const char* kFormats[TENON_DTYPE_COUNT] = {
      "?",     "B",     "b", "H",     "h", "I", "i",  "Q", "q",
      nullptr, nullptr, "e", nullptr, "f", "d", "Zf", "Zd"};
  return kFormats[dtype];
}

// What an export holds: a view of its own, because `x.data = ...` may give the tensor other memory.
struct Export {
  Tensor view;
  Py_ssize_t strides[TENON_MAX_NDIM];
};

const char* why_not_exported(const tenon_tensor* tensor, int flags) {
  if (is_composed(tensor))
    return "the tensor is composed of others and has no memory; use .to_dense(), or its parts";
  if (tensor->device == TENON_DEVICE_META || !is_host_memory(tensor->device))
    return "the tensor is not in host memory; move it with .to('cpu')";
  if (autograd && autograd->requires_grad(tensor)) return "the tensor requires grad; use .detach()";
  if (!buffer_format(tensor->dtype))
    return "the dtype has no buffer format; convert it with .to(tenon.float32)";
  if (flags & PyBUF_WRITABLE && tensor->flags & TENON_TENSOR_READONLY)
    return "the tensor is read-only";
  bool wants_contiguous = (flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
                          (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                          (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  if (wants_contiguous && !(tensor->flags & TENON_TENSOR_CONTIGUOUS))
    return "the tensor is not contiguous; use .contiguous()";
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && tensor->ndim > 1)
    return "the tensor is in row-major order";
  return nullptr;
}

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  tenon_tensor* tensor = handle_of(self);
  buffer->obj = nullptr;
  if (!may_read("numpy(), or another user of the buffer protocol,")) return -1;
  if (const char* reason = why_not_exported(tensor, flags)) {
    PyErr_SetString(PyExc_BufferError, reason);
    return -1;
  }
  tenon_tensor* view;
  ErrorSink err;
  tenon_status status = host->tensor_view(tensor, tensor->dtype, tensor->ndim, tensor->shape,
                                          tensor->strides, 0, &view, err);
  if (status != TENON_OK) return raise(status, err), -1;
  auto* held = new (std::nothrow) Export{Tensor::adopt(view), {}};
  if (!held) return PyErr_NoMemory(), -1;
  Py_ssize_t size = host->dtype_size(tensor->dtype);
  for (int32_t axis = 0; axis < view->ndim; ++axis)
    held->strides[axis] = view->strides[axis] * size;
  static char empty;  // exporters give no NULL, even for nothing
  buffer->buf = view->data ? view->data : &empty;
  buffer->obj = Py_NewRef(self);
  buffer->len = view->numel * size;
  buffer->itemsize = size;
  buffer->readonly = (view->flags | tensor->flags) & TENON_TENSOR_READONLY ? 1 : 0;
  buffer->ndim = view->ndim;
  buffer->format = flags & PyBUF_FORMAT ? const_cast<char*>(buffer_format(tensor->dtype)) : nullptr;
  buffer->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(view->shape) : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? held->strides : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = held;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* buffer) { delete static_cast<Export*>(buffer->internal); }

// -- in -------------------------------------------------------------------------------------------

struct Import {
  Py_buffer buffer;
};

void drop_buffer(void* user) {
  auto* held = static_cast<Import*>(user);
  PythonThread python;
  if (!python.is_alive()) return;  // the interpreter is gone, and the exporter with it
  PyBuffer_Release(&held->buffer);
  delete held;
}

int32_t integer_dtype(Py_ssize_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? TENON_DTYPE_I8 : TENON_DTYPE_U8;
    case 2:
      return is_signed ? TENON_DTYPE_I16 : TENON_DTYPE_U16;
    case 4:
      return is_signed ? TENON_DTYPE_I32 : TENON_DTYPE_U32;
    default:
      return is_signed ? TENON_DTYPE_I64 : TENON_DTYPE_U64;
  }
}

// -1: no dtype of ours.
int32_t dtype_of_format(const char* format, Py_ssize_t size) {
  if (!format) return TENON_DTYPE_U8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if ((*format == '>' || *format == '!') && size == 1) ++format;
  if (std::strcmp(format, "Zf") == 0) return TENON_DTYPE_C64;
  if (std::strcmp(format, "Zd") == 0) return TENON_DTYPE_C128;
  if (!format[0] || format[1]) return -1;
  switch (*format) {
    case '?':
      return TENON_DTYPE_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return integer_dtype(size, true);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return integer_dtype(size, false);
    case 'e':
      return TENON_DTYPE_F16;
    case 'f':
      return TENON_DTYPE_F32;
    case 'd':
      return TENON_DTYPE_F64;
    default:
      return -1;
  }
}

// Wrap memory that `held` keeps; releases it on failure.
Tensor wrap_import(Import* held, int32_t dtype, int32_t ndim, const int64_t* shape,
                   const int64_t* strides, void* data) {
  tenon_device_id device = require_host_device();
  if (device != TENON_DEVICE_NONE) {
    ErrorSink err;
    tenon_tensor* tensor;
    uint32_t flags = held->buffer.readonly ? TENON_TENSOR_READONLY : 0;
    tenon_status status = host->tensor_wrap(device, dtype, ndim, shape, strides, data, flags,
                                            drop_buffer, held, &tensor, err);
    if (status == TENON_OK) return Tensor::adopt(tensor);
    raise(status, err);
  }
  PyBuffer_Release(&held->buffer);
  delete held;
  return {};
}

// Whether the numbers of a format have the byte order that this machine does not have.
bool is_swapped(const char* format) {
  constexpr bool kIsLittle = std::endian::native == std::endian::little;
  return format != nullptr && (kIsLittle ? *format == '>' || *format == '!' : *format == '<');
}

Tensor refuse_import(
    Import* held, const char* problem, const char* detail,
    const char* advice =
        "use tenon.tensor(...) on a copy, such as array.copy() or array.astype(...)") {
  raise_error(PyExc_ValueError, "%s%s; %s", problem, detail, advice);
  PyBuffer_Release(&held->buffer);
  delete held;
  return {};
}

}  // namespace

Tensor tensor_from_buffer(PyObject* exporter) {
  if (!ensure_loaded()) return {};
  auto* held = new Import;
  if (PyObject_GetBuffer(exporter, &held->buffer, PyBUF_RECORDS_RO) < 0) {
    delete held;
    return {};
  }
  const Py_buffer& buffer = held->buffer;
  int32_t dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (dtype < 0 && is_swapped(buffer.format))
    return refuse_import(
        held, "expected numbers in this machine's byte order, got the element format ",
        buffer.format, "convert them: array.astype(array.dtype.newbyteorder('='))");
  if (dtype < 0)
    return refuse_import(held, "no dtype matches the array's element format ", buffer.format);
  if (buffer.ndim > TENON_MAX_NDIM) return refuse_import(held, "the array has too many axes", "");
  if (reinterpret_cast<uintptr_t>(buffer.buf) %
      static_cast<uintptr_t>(buffer.itemsize > 8 ? 8 : buffer.itemsize))
    return refuse_import(held, "the array's memory is not aligned", "");
  int64_t strides[TENON_MAX_NDIM];
  for (int axis = 0; axis < buffer.ndim; ++axis) {
    if (buffer.strides[axis] % buffer.itemsize && buffer.shape[axis] > 1)
      return refuse_import(held, "the array's strides are no multiple of its element size", "");
    strides[axis] = buffer.strides[axis] / buffer.itemsize;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  return wrap_import(held, dtype, buffer.ndim, reinterpret_cast<const int64_t*>(buffer.shape),
                     strides, buffer.buf);
}

Tensor copy_of_small_buffer(PyObject* exporter) {
  constexpr Py_ssize_t kMaxBytes = 16 * 1024;  // more are worth the operator, which shares them out
  Py_buffer buffer;
  if (!PyObject_CheckBuffer(exporter)) return {};
  if (PyObject_GetBuffer(exporter, &buffer, PyBUF_ND | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    return {};
  }
  int32_t dtype = dtype_of_format(buffer.format, buffer.itemsize);
  Tensor copy;
  if (dtype >= 0 && buffer.ndim <= TENON_MAX_NDIM && buffer.len <= kMaxBytes)
    copy = make_host_tensor(dtype, buffer.ndim, reinterpret_cast<const int64_t*>(buffer.shape));
  if (copy && buffer.len > 0) std::memcpy(copy->data, buffer.buf, static_cast<size_t>(buffer.len));
  PyBuffer_Release(&buffer);
  return copy;
}

Tensor tensor_from_raw_buffer(PyObject* exporter, int32_t dtype, PyObject* shape,
                              int64_t byte_offset) {
  if (!ensure_loaded()) return {};
  auto* held = new Import;
  if (PyObject_GetBuffer(exporter, &held->buffer, PyBUF_SIMPLE) < 0) {
    delete held;
    return {};
  }
  int64_t size = host->dtype_size(dtype), extents[TENON_MAX_NDIM], count = 1;
  int64_t available = byte_offset < 0 ? -1 : held->buffer.len - byte_offset;
  auto refuse = [&](const char* format, auto... values) {
    raise_error(PyExc_ValueError, format, values...);
    PyBuffer_Release(&held->buffer);
    delete held;
    return Tensor();
  };
  const long long length = held->buffer.len;
  if (available < 0)
    return refuse(
        "frombuffer(): expected an offset from 0 to %lld, the bytes of the buffer, got %lld",
        length, static_cast<long long>(byte_offset));
  int32_t ndim = 1;
  if (shape == Py_None) {
    if (available % size)
      return refuse(
          "frombuffer(): expected a multiple of %lld bytes, the size of a %s, got %lld; pass a "
          "part of "
          "the buffer, or a shape",
          static_cast<long long>(size), host->dtype_name(dtype), static_cast<long long>(available));
    extents[0] = count = available / size;
  } else {
    PyObject* items = PySequence_Tuple(shape);
    Py_ssize_t given = items ? PyTuple_GET_SIZE(items) : 0;
    bool is_shape = items && given <= TENON_MAX_NDIM;
    ndim = is_shape ? static_cast<int32_t>(given) : 0;
    for (int32_t axis = 0; axis < ndim && is_shape; ++axis) {
      extents[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(items, axis));
      is_shape = extents[axis] >= 0;
      if (!is_shape || __builtin_mul_overflow(count, extents[axis], &count)) count = INT64_MAX / 32;
    }
    Py_XDECREF(items);
    PyErr_Clear();
    if (!is_shape)
      return refuse(
          "frombuffer(): expected a shape of at most %d integers that are not negative, got %R",
          TENON_MAX_NDIM, shape);
  }
  if (count * size > available)
    return refuse(
        "frombuffer(): expected a buffer with %lld bytes from byte %lld on for the shape %R "
        "of %s, got %lld",
        static_cast<long long>(count * size), static_cast<long long>(byte_offset), shape,
        host->dtype_name(dtype), static_cast<long long>(available));
  char* data = static_cast<char*>(held->buffer.buf) + byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size > 8 ? 8 : size))
    return refuse_import(held, "the memory at the offset is not aligned", "");
  return wrap_import(held, dtype, ndim, extents, nullptr, data);
}

PyBufferProcs tensor_buffer_methods = {
    .bf_getbuffer = get_buffer,
    .bf_releasebuffer = release_buffer,
};

}  // namespace tenon::python
