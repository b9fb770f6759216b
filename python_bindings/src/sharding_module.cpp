// SPDX-License-Identifier: Apache-2.0
// Meshes of ranks and sharded tensors (tenon/services/sharding.h), for tenon.distributed.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/services/sharding.h>

#include <vector>

#include "host_call.hpp"
#include "modules.hpp"
#include "python_callback.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_sharding_api& sharding() {
  need_plugins();
  const void* service = host->service_find(TENON_SHARDING_SERVICE, TENON_SHARDING_VERSION);
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "this needs the sharding plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_sharding_api*>(service);
}

// user: the Python function, which is given axis, from, to, extent, local, op and has_rule, and returns a Tensor.
tenon_status move_by_python(void* user, const tenon_sharding_move* move, tenon_tensor** out,
                            tenon_err* err) {
  return run_python(err, [&] {
    const WithoutRecording without;
    nb::object local = nb::steal(wrap_borrowed(move->local));
    if (!local) return false;
    nb::object moved = nb::steal(PyObject_CallFunction(
        static_cast<PyObject*>(user), "iLLLOzi", move->axis, static_cast<long long>(move->from),
        static_cast<long long>(move->to), static_cast<long long>(move->extent), local.ptr(),
        move->op, move->has_rule));
    if (!moved) return false;
    tenon_tensor* made = require_tensor(moved.ptr(), "a move between ranks");
    if (!made) return false;
    host->tensor_retain(made);
    *out = made;
    return true;
  });
}

void drop_function(void* user) {
  PythonThread python;
  if (python.is_alive()) Py_DECREF(static_cast<PyObject*>(user));
}

int64_t mesh_create(const std::vector<int64_t>& sizes, const std::vector<int64_t>& coordinates,
                    nb::object move) {
  if (sizes.size() != coordinates.size())
    throw nb::value_error("a mesh: expected as many coordinates as sizes");
  tenon_mesh_def def = {};
  def.struct_size = sizeof def;
  def.ndim = static_cast<uint32_t>(sizes.size());
  def.sizes = sizes.data();
  def.coordinates = coordinates.data();
  def.move = move_by_python;
  def.drop = drop_function;
  def.user = move.ptr();
  int64_t id;
  ErrorSink err;
  check(sharding().mesh_create(&def, &id, err), err);
  move.inc_ref();
  return id;
}

void mesh_release(int64_t id) { sharding().mesh_release(id); }

nb::object shard(int64_t mesh, const std::vector<int64_t>& shape, nb::handle local,
                 std::vector<int64_t> placements) {
  placements.resize(TENON_SHARDED_MAX_AXES);
  tenon_tensor* part = tensor_argument(local, "from_local");
  ErrorSink err;
  tenon_tensor* made;
  check(sharding().create(mesh, static_cast<int32_t>(shape.size()), shape.data(), part,
                          placements.data(), &made, err),
        err);
  return nb::steal(wrap(made));
}

nb::object redistribute(nb::handle tensor, std::vector<int64_t> placements) {
  placements.resize(TENON_SHARDED_MAX_AXES);
  tenon_tensor* whole = tensor_argument(tensor, "redistribute");
  ErrorSink err;
  tenon_tensor* made;
  check(sharding().redistribute(whole, placements.data(), &made, err), err);
  return nb::steal(wrap(made));
}

void set_sharding_rules(const std::string& name, std::optional<std::string> lines) {
  need_plugins();
  const tenon_op* op = host->op_find(name.c_str());
  if (!op) throw nb::value_error(("expected the name of an operator, got " + name).c_str());
  ErrorSink err;
  check(sharding().set_rules(op, lines ? lines->c_str() : nullptr, err), err);
}

// Methods and properties that the package adds to Tensor when it is imported.
void add_tensor_attributes(nb::dict attributes) {
  for (auto [name, value] : attributes)
    if (add_tensor_attribute(nb::cast<std::string>(name).c_str(),
                             nb::object(nb::borrow(value)).ptr()))
      throw nb::python_error();
}

}  // namespace

void add_sharding_functions(nb::module_& module) {
  module.def("mesh_create", &mesh_create);
  module.def("mesh_release", &mesh_release);
  module.def("set_sharding_rules", &set_sharding_rules, nb::arg("operator"),
             nb::arg("rules").none());
  module.def("add_tensor_attributes", &add_tensor_attributes);
  module.def("shard_tensor", &shard);
  module.def("redistribute_tensor", &redistribute);
}

}  // namespace tenon::python
