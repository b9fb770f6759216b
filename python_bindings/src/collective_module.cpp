// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.collective where the device has the group: checks, and one call each.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "group.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

using CollectiveGroup = Group<tenon_collective_api, TENON_GROUP_COLLECTIVE>;
using ExchangeGroup = Group<tenon_exchange_api, TENON_GROUP_EXCHANGE>;

// Whether the device communicates by itself.
bool has_collective(nb::handle device) {
  const void* table = nullptr;
  tenon_device handle = nullptr;
  tenon_device_id id = device_id(device);
  ErrorSink err;
  tenon_status status = host->device_group_borrow(id, TENON_GROUP_COLLECTIVE, &table, &handle, err);
  if (status == TENON_OK) host->device_group_return(id, TENON_GROUP_COLLECTIVE);
  host->err_clear(err);
  if (status != TENON_UNSUPPORTED && status != TENON_OK) check(status, err);
  return status == TENON_OK;
}

nb::bytes comm_id_create(nb::handle device) {
  CollectiveGroup group(device_id(device));
  tenon_comm_id id = {};
  group.run("comm_id_create",
            [&](tenon_err* err) { return group->comm_id_create(group.handle(), &id, err); });
  return nb::bytes(id.bytes, sizeof id.bytes);
}

class Communicator {
 public:
  Communicator(tenon_device_id device, nb::bytes id_bytes, int32_t rank, int32_t size)
      : group_(device) {
    tenon_comm_id id;
    if (id_bytes.size() != sizeof id.bytes)
      throw nb::value_error("expected the bytes that create_id() returned for this kind of device");
    std::memcpy(id.bytes, id_bytes.c_str(), sizeof id.bytes);
    group_.run("comm_create", [&](tenon_err* err) {
      tenon_status status = group_->comm_create(group_.handle(), &id, rank, size, &comm_, err);
      if (status == TENON_OK && !comm_)
        return tenon::fail(err, TENON_INTERNAL,
                           "returned OK and no handle; this is a bug in the plugin");
      return status;
    });
  }
  // Takes over `comm`, a part of another communicator.
  Communicator(tenon_device_id device, tenon_comm comm) : group_(device), comm_(comm) {}
  ~Communicator() { close(); }
  Communicator(const Communicator&) = delete;

  void close() {
    group_.require_idle("the communicator");
    tenon_comm comm = std::exchange(comm_, nullptr);
    if (!comm) return;
    nb::gil_scoped_release unlocked;
    if (group_.settle()) group_->comm_destroy(group_.handle(), comm);
  }
  void abort() {
    if (comm_) group_->comm_abort(group_.handle(), comm_);
  }

  void all_reduce(nb::handle source, nb::handle destination, int32_t reduce) {
    tenon_tensor *from = use(source), *to = use(destination);
    run("all_reduce", to, [&](tenon_stream stream, tenon_err* err) {
      return group_->all_reduce(group_.handle(), comm_, from->data, to->data, count(from),
                                from->dtype, reduce, stream, err);
    });
  }
  void all_gather(nb::handle source, nb::handle destination) {
    tenon_tensor *from = use(source), *to = use(destination);
    run("all_gather", to, [&](tenon_stream stream, tenon_err* err) {
      return group_->all_gather(group_.handle(), comm_, from->data, to->data, count(from),
                                from->dtype, stream, err);
    });
  }
  void reduce_scatter(nb::handle source, nb::handle destination, int32_t reduce) {
    tenon_tensor *from = use(source), *to = use(destination);
    run("reduce_scatter", to, [&](tenon_stream stream, tenon_err* err) {
      return group_->reduce_scatter(group_.handle(), comm_, from->data, to->data, count(to),
                                    from->dtype, reduce, stream, err);
    });
  }
  void broadcast(nb::handle tensor, int32_t root) {
    tenon_tensor* both = use(tensor);
    run("broadcast", both, [&](tenon_stream stream, tenon_err* err) {
      return group_->broadcast(group_.handle(), comm_, both->data, count(both), both->dtype, root,
                               stream, err);
    });
  }
  void send(nb::handle tensor, int32_t rank) {
    tenon_tensor* from = use(tensor);
    run("send", nullptr, [&](tenon_stream stream, tenon_err* err) {
      return group_->send(group_.handle(), comm_, from->data, count(from), from->dtype, rank,
                          stream, err);
    });
  }
  void recv(nb::handle tensor, int32_t rank) {
    tenon_tensor* to = use(tensor);
    run("recv", to, [&](tenon_stream stream, tenon_err* err) {
      return group_->recv(group_.handle(), comm_, to->data, count(to), to->dtype, rank, stream,
                          err);
    });
  }
  void reduce(nb::handle source, nb::handle destination, int32_t reduce, int32_t root) {
    tenon_tensor *from = use(source), *to = destination.is_none() ? nullptr : use(destination);
    ExchangeGroup exchange(group_.device());
    run("reduce", to, [&](tenon_stream stream, tenon_err* err) {
      return exchange->reduce(group_.handle(), comm_, from->data, to ? to->data : nullptr,
                              count(from), from->dtype, reduce, root, stream, err);
    });
  }
  // Pairs of a tensor and a rank. All have the same dtype, says the package.
  void transfer(nb::list sends, nb::list receives) {
    std::vector<tenon_transfer> transfers;
    std::vector<tenon_tensor*> written;
    int32_t dtype = TENON_DTYPE_U8;
    const auto add = [&](nb::list pairs, uint32_t kind) {
      for (nb::handle pair : pairs) {
        tenon_tensor* tensor = use(nb::cast<nb::object>(pair[0]));
        dtype = tensor->dtype;
        transfers.push_back({kind, nb::cast<int32_t>(pair[1]), tensor->data, count(tensor)});
        if (kind == TENON_TRANSFER_RECV) written.push_back(tensor);
      }
    };
    add(sends, TENON_TRANSFER_SEND);
    add(receives, TENON_TRANSFER_RECV);
    ExchangeGroup exchange(group_.device());
    run("transfer", nullptr, [&](tenon_stream stream, tenon_err* err) {
      return exchange->transfer(group_.handle(), comm_, transfers.data(),
                                static_cast<uint32_t>(transfers.size()), dtype, stream, err);
    });
    for (tenon_tensor* tensor : written) host->tensor_bump_version(tensor);
  }
  // NULL: this rank takes part in none.
  std::unique_ptr<Communicator> split(int32_t color, int32_t key) {
    require_open();
    ExchangeGroup exchange(group_.device());
    tenon_comm part = nullptr;
    group_.run("comm_split", [&](tenon_err* err) {
      tenon_status status = exchange->comm_split(group_.handle(), comm_, color, key, &part, err);
      if (status == TENON_OK && (part == nullptr) != (color < 0))
        return tenon::fail(
            err, TENON_INTERNAL,
            "expected a communicator exactly if the color is not negative; this is a "
            "bug in the plugin");
      return status;
    });
    return part ? std::make_unique<Communicator>(group_.device(), part) : nullptr;
  }
  void check_error() {
    require_open();
    ExchangeGroup exchange(group_.device());
    group_.run("comm_error",
               [&](tenon_err* err) { return exchange->comm_error(group_.handle(), comm_, err); });
  }

 private:
  void require_open() const {
    if (!comm_) throw nb::value_error("the communicator was closed");
  }
  static uint64_t count(const tenon_tensor* tensor) { return static_cast<uint64_t>(tensor->numel); }

  // The package has seen to shapes; what would touch wrong memory is looked at here.
  tenon_tensor* use(nb::handle object) {
    tenon_tensor* tensor = tensor_argument(object, "collective");
    require_open();
    const char* wrong = nullptr;
    if (tensor->device != group_.device()) wrong = "is on another device than the communicator";
    if (!(tensor->flags & TENON_TENSOR_CONTIGUOUS)) wrong = "is not contiguous; use .contiguous()";
    if (tensor->byte_offset != 0) wrong = "begins inside an opaque allocation; copy it first";
    if (wrong) {
      raise_error(PyExc_ValueError, "the tensor %s", wrong);
      throw nb::python_error();
    }
    host->tensor_record_use(tensor, host->stream_current(group_.device()));
    return tensor;
  }

  template <class Call>
  void run(const char* name, tenon_tensor* written, Call&& call) {
    tenon_stream stream = host->stream_current(group_.device());
    group_.run(name, [&](tenon_err* err) { return call(stream, err); });
    if (written) host->tensor_bump_version(written);
  }

  CollectiveGroup group_;
  tenon_comm comm_ = nullptr;
};

}  // namespace

void add_collective_type(nb::module_& module) {
  module.def("has_collective", &has_collective, nb::arg("device").none() = nb::none());
  module.def("comm_id_create", &comm_id_create, nb::arg("device").none() = nb::none());
  nb::class_<Communicator>(module, "Communicator")
      .def(
          "__init__",
          [](Communicator* self, nb::handle device, nb::bytes id, int32_t rank, int32_t size) {
            new (self) Communicator(device_id(device), std::move(id), rank, size);
          },
          nb::arg("device"), nb::arg("id"), nb::arg("rank"), nb::arg("size"))
      .def("close", &Communicator::close)
      .def("abort", &Communicator::abort)
      .def("all_reduce", &Communicator::all_reduce)
      .def("all_gather", &Communicator::all_gather)
      .def("reduce_scatter", &Communicator::reduce_scatter)
      .def("broadcast", &Communicator::broadcast)
      .def("send", &Communicator::send)
      .def("recv", &Communicator::recv)
      .def("reduce", &Communicator::reduce, nb::arg(), nb::arg().none(), nb::arg(), nb::arg())
      .def("transfer", &Communicator::transfer)
      .def("split", &Communicator::split)
      .def("check_error", &Communicator::check_error);
}

}  // namespace tenon::python
