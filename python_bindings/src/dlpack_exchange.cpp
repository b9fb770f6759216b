// SPDX-License-Identifier: Apache-2.0
// DLPack's table of C functions, both ways: some tens of nanoseconds where a capsule takes
// microseconds.
#include <cstring>

#include "call.hpp"
#include "dlpack.hpp"
#include "dlpack_layout.hpp"
#include "runtime.hpp"

namespace tenon::python {
namespace {

// -- out ------------------------------------------------------------------------------------------

tenon_tensor* tensor_to_share(void* object) {
  auto* python = static_cast<PyObject*>(object);
  if (is_tensor(python)) return handle_of(python);
  return raise_error(PyExc_TypeError, "DLPack: expected a tenon.Tensor, got %s",
                     Py_TYPE(python)->tp_name);
}

int managed_from_object(void* object, ManagedVersioned** out) {
  tenon_tensor* tensor = tensor_to_share(object);
  *out = tensor ? managed_of_tensor(tensor) : nullptr;
  return *out ? 0 : -1;
}

int object_from_managed(ManagedVersioned* managed, void** out) {
  *out = ensure_loaded() ? to_python(tensor_of_managed(managed)) : nullptr;
  return *out ? 0 : -1;
}

int borrowed_from_object(void* object, DLTensor* out) {
  tenon_tensor* tensor = tensor_to_share(object);
  if (!tensor || !may_share(tensor)) return -1;
  std::memcpy(out, tensor, sizeof *out);
  return 0;
}

// A dense tensor on the host, uninitialised. Called without the GIL, perhaps.
int allocate(DLTensor* prototype, ManagedVersioned** out, void* context, SetError set_error) {
  const PyGILState_STATE state = PyGILState_Ensure();
  *out = nullptr;
  if (ensure_loaded()) *out = managed_like(*prototype);
  if (!*out) {
    PyErr_Clear();
    set_error(context, "BufferError",
              "tenon: expected a dtype that it has, a shape, and the CPU as device");
  }
  PyGILState_Release(state);
  return *out ? 0 : -1;
}

// What is handed out has been waited for.
int stream_of_device(int32_t, int32_t, void** out) {
  *out = nullptr;
  return 0;
}

constexpr ExchangeTable kTable = {
    .header = {kMajor, kExchangeMinor, nullptr},
    .allocate = allocate,
    .managed_from_object = managed_from_object,
    .object_from_managed = object_from_managed,
    .borrowed_from_object = borrowed_from_object,
    .current_stream = stream_of_device,
};

// -- in -------------------------------------------------------------------------------------------

// The table of a type; NULL: none of a version that is known.
const ExchangeTable* read_table(PyTypeObject* type) {
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), kExchangeAttribute);
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* header =
      static_cast<const ExchangeHeader*>(PyCapsule_GetPointer(capsule, kExchangeCapsule));
  Py_DECREF(capsule);  // the table is static
  if (!header) PyErr_Clear();
  while (header && header->major != kMajor) header = header->previous;
  return reinterpret_cast<const ExchangeTable*>(header);
}

// The type that was asked last, which is held, and its table. Guarded by the GIL.
struct LastType {
  PyTypeObject* type = nullptr;
  const ExchangeTable* table = nullptr;
};
LastType last;

const ExchangeTable* table_of(PyTypeObject* type) {
  if (last.type == type) [[likely]]
    return last.table;
  const ExchangeTable* table = read_table(type);
  Py_INCREF(type);
  PyTypeObject* before = last.type;
  last = {type, table};
  Py_XDECREF(before);
  return table;
}

// PyTorch's table hands out what requires a gradient without a word; __dlpack__ refuses it.
bool requires_gradient(PyObject* producer) {
  static PyObject* name = PyUnicode_InternFromString("requires_grad");
  PyObject* answer = PyObject_GetAttr(producer, name);
  if (!answer) {
    PyErr_Clear();
    return false;
  }
  const bool is_true = answer != Py_False;
  Py_DECREF(answer);
  return is_true;
}

}  // namespace

bool add_exchange_table(PyTypeObject* type) {
  PyObject* capsule = PyCapsule_New(const_cast<ExchangeTable*>(&kTable), kExchangeCapsule, nullptr);
  if (!capsule) return false;
  const bool is_set = PyDict_SetItemString(type->tp_dict, kExchangeAttribute, capsule) == 0;
  Py_DECREF(capsule);
  PyType_Modified(type);
  return is_set;
}

Tensor tensor_by_exchange(PyObject* producer) {
  const ExchangeTable* table = table_of(Py_TYPE(producer));
  if (!table || !table->managed_from_object || requires_gradient(producer)) return {};
  ManagedVersioned* managed = nullptr;
  if (table->managed_from_object(producer, &managed) != 0 || !managed) {
    PyErr_Clear();  // __dlpack__ says why, or knows a way
    return {};
  }
  // Devices have streams to wait for, and complex tensors may be stored as their conjugates: both
  // are __dlpack__'s.
  constexpr uint8_t kComplex = 5;
  const bool is_plain = managed->major == kMajor && managed->tensor.device_type == kDLCPU &&
                        managed->tensor.dtype.code != kComplex;
  Tensor tensor = is_plain ? tensor_of_managed(managed) : Tensor();
  if (!tensor && managed->deleter) managed->deleter(managed);
  return tensor;
}

PyObject* object_by_exchange(PyObject* tensor, PyObject* type) {
  tenon_tensor* handle = require_tensor(tensor, "dlpack_exchange");
  if (!handle) return nullptr;
  const ExchangeTable* table =
      PyType_Check(type) ? table_of(reinterpret_cast<PyTypeObject*>(type)) : nullptr;
  if (!table || !table->object_from_managed) return Py_NewRef(Py_None);
  ManagedVersioned* managed = managed_of_tensor(handle);
  if (!managed) return nullptr;
  void* object = nullptr;
  if (table->object_from_managed(managed, &object) == 0) return static_cast<PyObject*>(object);
  managed->deleter(managed);
  return nullptr;
}

}  // namespace tenon::python
