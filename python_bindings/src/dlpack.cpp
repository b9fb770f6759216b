// SPDX-License-Identifier: Apache-2.0
// DLPack, the common protocol for tensors that share memory: versioned capsules both ways, and the
// older unversioned ones for those who know nothing else.
#include "dlpack.hpp"

#include <tenon/dtypes.h>

#include <cstring>
#include <new>

#include "call.hpp"
#include "composed.hpp"
#include "convert.hpp"
#include "dlpack_layout.hpp"
#include "python_thread.hpp"
#include "recording.hpp"
#include "runtime.hpp"

namespace tenon::python {
namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

// -- out ------------------------------------------------------------------------------------------

// The manager is a view of its own: `x.data = ...` may give the exported tensor other memory.
template <class Struct>
void delete_managed(Struct* managed) {
  host->tensor_release(static_cast<tenon_tensor*>(managed->manager));
  delete managed;
}

template <class Struct>
Struct* make_managed(tenon_tensor* owned_view) {
  auto* managed = new (std::nothrow) Struct{};
  if (!managed) return nullptr;
  std::memcpy(&managed->tensor, owned_view, sizeof(DLTensor));
  managed->manager = owned_view;
  managed->deleter = delete_managed<Struct>;
  return managed;
}

// A consumer renames the capsule that it takes. One with its first name was not taken, and frees
// what it holds.
template <class Struct>
void destroy_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}
void destroy_plain(PyObject* capsule) { destroy_capsule<Managed>(capsule, kName); }
void destroy_versioned(PyObject* capsule) {
  destroy_capsule<ManagedVersioned>(capsule, kVersionedName);
}

Tensor fresh_view(tenon_tensor* tensor) {
  ErrorSink err;
  tenon_tensor* view;
  tenon_status status = host->tensor_view(tensor, tensor->dtype, tensor->ndim, tensor->shape,
                                          tensor->strides, 0, &view, err);
  if (status == TENON_OK) return Tensor::adopt(view);
  raise(status, err);
  return {};
}

ManagedVersioned* make_versioned(tenon_tensor* tensor, bool copied) {
  Tensor view = fresh_view(tensor);
  if (!view) return nullptr;
  auto* managed = make_managed<ManagedVersioned>(view.get());
  if (!managed) return static_cast<ManagedVersioned*>(static_cast<void*>(PyErr_NoMemory()));
  view.release();
  managed->major = kMajor;
  managed->minor = kMinor;
  managed->flags = (tensor->flags & TENON_TENSOR_READONLY ? kReadOnly : 0) | (copied ? kCopied : 0);
  return managed;
}

PyObject* versioned_capsule(tenon_tensor* tensor, bool copied) {
  ManagedVersioned* managed = make_versioned(tensor, copied);
  if (!managed) return nullptr;
  PyObject* capsule = PyCapsule_New(managed, kVersionedName, destroy_versioned);
  if (!capsule) managed->deleter(managed);
  return capsule;
}

PyObject* plain_capsule(tenon_tensor* tensor) {
  if (tensor->flags & TENON_TENSOR_READONLY)
    return raise_error(PyExc_BufferError,
                       "a read-only tensor needs a consumer that knows DLPack 1.0");
  Tensor view = fresh_view(tensor);
  if (!view) return nullptr;
  auto* managed = make_managed<Managed>(view.get());
  if (!managed) return PyErr_NoMemory();
  view.release();
  PyObject* capsule = PyCapsule_New(managed, kName, destroy_plain);
  if (!capsule) managed->deleter(managed);
  return capsule;
}

// -- in -------------------------------------------------------------------------------------------

template <class Struct>
void drop_import(void* user) {
  auto* managed = static_cast<Struct*>(user);
  PythonThread python;  // deleters may belong to Python objects
  if (python.is_alive() && managed->deleter) managed->deleter(managed);
}

constexpr uint32_t packed(tenon_dl_dtype type) {
  return uint32_t{type.code} << 24 | uint32_t{type.bits} << 16 | type.lanes;
}

// -1: no dtype of ours.
int32_t dtype_of(tenon_dl_dtype wanted) {
  switch (packed(wanted)) {
#define TENON_CASE(id, name, suffix, type_class, size, code, bits, lanes, ...) \
  case packed({TENON_DL_##code, bits, lanes}):                                 \
    return TENON_DTYPE_##id;
    TENON_DTYPES(TENON_CASE)
#undef TENON_CASE
    default:
      return -1;
  }
}

// The device of ours that DLPack's pair names, or TENON_DEVICE_NONE.
tenon_device_id device_of(int32_t type, int32_t index) {
  if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost) return host->device_host();
  for (uint32_t kind = 1; kind < host->device_kind_count(); ++kind) {
    if (static_cast<uint32_t>(index) >= host->device_count(kind)) continue;
    tenon_device_info info = {};
    info.struct_size = sizeof info;
    ErrorSink err;
    tenon_device_id id = static_cast<tenon_device_id>(TENON_DEVICE_ID(kind, index));
    if (host->device_info(id, &info, err) != TENON_OK)
      host->err_clear(err);
    else if (info.dl_device_type == type)
      return id;
  }
  return TENON_DEVICE_NONE;
}

// The tensor owns `managed` from here on, unless it is empty.
template <class Struct>
Tensor wrap_managed(Struct* managed, uint32_t flags) {
  const DLTensor& from = managed->tensor;
  int32_t dtype = dtype_of(from.dtype);
  tenon_device_id device = device_of(from.device_type, from.device_id);
  if (dtype < 0) {
    raise_error(PyExc_BufferError, "no dtype matches DLPack's (code %d, %d bits, %d lanes)",
                from.dtype.code, from.dtype.bits, from.dtype.lanes);
    return {};
  }
  if (device == TENON_DEVICE_NONE) {
    raise_error(PyExc_BufferError, "no loaded plugin serves DLPack's device (type %d, index %d)",
                from.device_type, from.device_id);
    return {};
  }
  ErrorSink err;
  tenon_tensor* tensor;
  tenon_status status = host->tensor_wrap(device, dtype, from.ndim, from.shape, from.strides,
                                          static_cast<char*>(from.data) + from.byte_offset, flags,
                                          drop_import<Struct>, managed, &tensor, err);
  if (status != TENON_OK) {
    raise(status, err);
    return {};
  }
  return Tensor::adopt(tensor);
}

template <class Struct>
Tensor import_managed(PyObject* capsule, const char* name, const char* used_name, uint32_t flags) {
  auto* managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) return {};
  Tensor tensor = wrap_managed(managed, flags);
  if (!tensor) return {};
  PyCapsule_SetName(capsule, used_name);  // taken: its destructor must leave it alone
  PyCapsule_SetDestructor(capsule, nullptr);
  return tensor;
}

// What was queued for the tensor must be done before others read it. False: Python error set.
bool wait_for(const tenon_tensor* tensor) {
  if (is_host_memory(tensor->device)) return true;
  ErrorSink err;
  const tenon_status status = host->device_sync(tensor->device, err);
  return status == TENON_OK || raise(status, err);
}

bool is_known_version(const ManagedVersioned& managed) {
  if (managed.major == kMajor) return true;
  return raise_error(PyExc_BufferError, "expected DLPack %d.x, got %d.%d", kMajor, managed.major,
                     managed.minor);
}

uint32_t flags_of(const ManagedVersioned& managed) {
  return managed.flags & kReadOnly ? TENON_TENSOR_READONLY : 0;
}

Tensor import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
    if (!is_known_version(*managed)) return {};
    return import_managed<ManagedVersioned>(capsule, kVersionedName, kUsedVersionedName,
                                            flags_of(*managed));
  }
  if (PyCapsule_IsValid(capsule, kName))
    return import_managed<Managed>(capsule, kName, kUsedName, 0);
  raise_error(PyExc_TypeError, "expected a DLPack capsule that no consumer has taken, got %R",
              capsule);
  return {};
}

// __dlpack__ of producers that know DLPack 1.0, or of older ones.
PyObject* request_capsule(PyObject* producer) {
  PyObject* method = PyObject_GetAttrString(producer, "__dlpack__");
  if (!method) return nullptr;
  PyObject* no_arguments = PyTuple_New(0);
  PyObject* keywords = Py_BuildValue("{s(II)}", "max_version", kMajor, kMinor);
  PyObject* capsule =
      no_arguments && keywords ? PyObject_Call(method, no_arguments, keywords) : nullptr;
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_CallNoArgs(method);
  }
  Py_XDECREF(keywords);
  Py_XDECREF(no_arguments);
  Py_DECREF(method);
  return capsule;
}

}  // namespace

Tensor tensor_of_managed(ManagedVersioned* managed) {
  if (!is_known_version(*managed)) return {};
  return wrap_managed(managed, flags_of(*managed));
}

ManagedVersioned* managed_of_tensor(tenon_tensor* tensor) {
  return may_share(tensor) && wait_for(tensor) ? make_versioned(tensor, false) : nullptr;
}

ManagedVersioned* managed_like(const DLTensor& prototype) {
  const int32_t dtype = dtype_of(prototype.dtype);
  if (dtype < 0 || device_of(prototype.device_type, prototype.device_id) != host->device_host()) {
    raise_error(PyExc_BufferError, "DLPack: expected a dtype of ours on the CPU");
    return nullptr;
  }
  const Tensor made = make_host_tensor(dtype, prototype.ndim, prototype.shape);
  return made ? make_versioned(made.get(), false) : nullptr;
}

Tensor tensor_from_dlpack(PyObject* producer) {
  if (!ensure_loaded()) return {};
  if (Tensor tensor = tensor_by_exchange(producer); tensor || PyErr_Occurred()) return tensor;
  PyObject* capsule =
      PyCapsule_CheckExact(producer) ? Py_NewRef(producer) : request_capsule(producer);
  if (!capsule) return {};
  Tensor result = import_capsule(capsule);
  Py_DECREF(capsule);
  return result;
}

bool may_share(tenon_tensor* tensor) {
  if (!has_memory(tensor, "DLPack")) return false;
  if (tensor->device == TENON_DEVICE_META)
    return raise_error(PyExc_BufferError, "a meta tensor has no memory to share");
  if (!may_read("DLPack")) return false;
  if (autograd && autograd->requires_grad(tensor))
    return raise_error(PyExc_BufferError,
                       "cannot share a tensor that requires grad; use .detach()");
  return true;
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  const tenon_tensor* tensor = handle_of(self);
  return Py_BuildValue("(ii)", tensor->dl_device_type, tensor->dl_device_id);
}

namespace {

// Two integers, which DLPack's devices and versions are. False: TypeError set.
bool read_pair(PyObject* pair, const char* name, const char* meaning, int& first, int& second) {
  if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 &&
      PyArg_ParseTuple(pair, "ii", &first, &second))
    return true;
  PyErr_Clear();
  return raise_error(PyExc_TypeError,
                     "__dlpack__(): argument '%s': expected None or a tuple %s, got %R", name,
                     meaning, pair);
}

}  // namespace

PyObject* tensor_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *dl_device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__",
                                   const_cast<char**>(names), &stream, &max_version, &dl_device,
                                   &copy))
    return nullptr;
  tenon_tensor* tensor = handle_of(self);
  if (!may_share(tensor)) return nullptr;
  int type = tensor->dl_device_type, index = tensor->dl_device_id;
  int major = 0, minor = 0;
  if (dl_device != Py_None &&
      !read_pair(dl_device, "dl_device", "(device type, index), as __dlpack_device__() gives", type,
                 index))
    return nullptr;
  if (max_version != Py_None &&
      !read_pair(max_version, "max_version", "(major, minor)", major, minor))
    return nullptr;
  Tensor shared = Tensor::borrow(tensor);
  bool moved = type != tensor->dl_device_type || index != tensor->dl_device_id;
  if (moved) {
    tenon_device_id device = device_of(type, index);
    if (copy == Py_False || device == TENON_DEVICE_NONE)
      return raise_error(PyExc_BufferError,
                         "the tensor is on device (%d, %d), and cannot be shared from (%d, %d)",
                         tensor->dl_device_type, tensor->dl_device_id, type, index);
    shared = convert_tensor(tensor, kAnyDtype, device);
  } else if (copy == Py_True) {
    shared = convert_tensor(tensor, kAnyDtype, TENON_DEVICE_NONE, true);
  }
  if (!shared) return nullptr;
  if (!wait_for(shared.get())) return nullptr;
  return major >= 1 ? versioned_capsule(shared.get(), moved || copy == Py_True)
                    : plain_capsule(shared.get());
}

}  // namespace tenon::python
