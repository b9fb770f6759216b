// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.distributed: stores, groups of ranks over host memory, and calls that go on.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <tenon/services/collectives.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_collectives_api& collectives() {
  need_plugins();
  const void* service = host->service_find(TENON_COLLECTIVES_SERVICE, TENON_COLLECTIVES_VERSION);
  if (!service) {
    raise_error(PyExc_RuntimeError,
                "this needs the collectives plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_collectives_api*>(service);
}

void take_bytes(void* user, const void* bytes, uint64_t size) {
  static_cast<std::string*>(user)->assign(static_cast<const char*>(bytes), size);
}

nb::bytes as_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string as_text(nb::bytes bytes) { return {bytes.c_str(), bytes.size()}; }

uint64_t nanoseconds(double seconds) {
  if (!(seconds >= 0)) throw nb::value_error("expected a time limit of 0 s or more");
  return seconds > 1e9 ? ~uint64_t{0} : static_cast<uint64_t>(seconds * 1e9);
}

void copy_secret(uint8_t (&to)[16], nb::bytes secret) {
  if (secret.size() != sizeof to) throw nb::value_error("expected a secret of 16 bytes");
  std::memcpy(to, secret.c_str(), sizeof to);
}

class StoreServer {
 public:
  StoreServer(std::optional<std::string> address, uint32_t port, nb::bytes secret) : port_(port) {
    uint8_t bytes[16];
    copy_secret(bytes, secret);
    const tenon_collectives_api& api = collectives();
    call_unlocked([&](tenon_err* err) {
      return api.store_serve(address ? address->c_str() : nullptr, &port_, bytes, &server_, err);
    });
  }
  ~StoreServer() { close(); }
  StoreServer(const StoreServer&) = delete;
  void close() {
    tenon_store_server server = std::exchange(server_, nullptr);
    if (!server) return;
    const tenon_collectives_api& api = collectives();
    nb::gil_scoped_release unlocked;
    api.store_stop(server);
  }
  uint32_t port() const { return port_; }

 private:
  uint32_t port_;
  tenon_store_server server_ = nullptr;
};

class Store {
 public:
  Store(int32_t kind, std::string where, uint32_t port, nb::bytes secret, double timeout)
      : api_(collectives()) {
    tenon_store_options options = {};
    options.struct_size = sizeof options;
    options.kind = kind;
    options.where = where.c_str();
    options.port = port;
    options.timeout_ns = nanoseconds(timeout);
    copy_secret(options.secret, secret);
    call_unlocked([&](tenon_err* err) { return api_.store_open(&options, &store_, err); });
  }
  ~Store() {
    if (store_) api_.store_close(store_);
  }
  Store(const Store&) = delete;

  void set(const std::string& key, nb::bytes value) {
    const std::string bytes = as_text(value);
    call_unlocked([&](tenon_err* err) {
      return api_.store_set(store_, key.c_str(), bytes.data(), bytes.size(), err);
    });
  }
  nb::bytes get(const std::string& key, double timeout) {
    std::string value;
    const uint64_t limit = nanoseconds(timeout);
    call_unlocked([&](tenon_err* err) {
      return api_.store_get(store_, key.c_str(), limit, take_bytes, &value, err);
    });
    return as_bytes(value);
  }
  int64_t add(const std::string& key, int64_t delta) {
    int64_t sum = 0;
    call_unlocked(
        [&](tenon_err* err) { return api_.store_add(store_, key.c_str(), delta, &sum, err); });
    return sum;
  }
  nb::bytes compare_set(const std::string& key, nb::bytes expected, nb::bytes value) {
    const std::string before = as_text(expected), after = as_text(value);
    std::string result;
    call_unlocked([&](tenon_err* err) {
      return api_.store_compare_set(store_, key.c_str(), before.data(), before.size(), after.data(),
                                    after.size(), take_bytes, &result, err);
    });
    return as_bytes(result);
  }
  bool erase(const std::string& key) {
    int32_t was_there = 0;
    call_unlocked(
        [&](tenon_err* err) { return api_.store_delete(store_, key.c_str(), &was_there, err); });
    return was_there != 0;
  }
  tenon_store handle() const { return store_; }

 private:
  const tenon_collectives_api& api_;
  tenon_store store_ = nullptr;
};

// Whether a signal wants the thread back. Its exception stays set for who called the group.
int32_t is_interrupted(void*) {
  const PyGILState_STATE state = PyGILState_Ensure();
  const int result = PyErr_CheckSignals();
  PyGILState_Release(state);
  return result != 0;
}

// Raises what ended a group as the class of tenon.distributed that says so.
void raise_failure(int32_t kind, const std::string& text, const ErrorSink& err) {
  host->err_clear(err);
  static constexpr const char* kNames[] = {"", "CollectiveMismatch", "PeerFailed",
                                           "CollectiveAborted", "CollectiveTimeout"};
  nb::object type = nb::module_::import_("tenon.distributed.errors").attr(kNames[kind]);
  PyErr_SetString(type.ptr(), text.c_str());
  throw nb::python_error();
}

void check_group(const tenon_collectives_api& api, tenon_rank_group group, tenon_status status,
                 const ErrorSink& err) {
  if (status == TENON_OK) return;
  std::string text;
  const int32_t kind = api.failure(group, take_bytes, &text);
  const char* said = host->err_text(err);
  if (kind == TENON_COLLECTIVE_WORKS || !said || text != said || PyErr_Occurred())
    return check(status, err);
  raise_failure(kind, text, err);
}

// The same for a started call of a group that was closed and tells nothing any more: what was wrong with the call
// itself was refused before it was started, so that these codes are those of failures.
void check_orphan(tenon_status status, const ErrorSink& err) {
  const int32_t kind = status == TENON_INVALID_ARGUMENT    ? TENON_COLLECTIVE_MISMATCH
                       : status == TENON_UNAVAILABLE       ? TENON_COLLECTIVE_PEER_FAILED
                       : status == TENON_ABORTED           ? TENON_COLLECTIVE_ABORTED
                       : status == TENON_DEADLINE_EXCEEDED ? TENON_COLLECTIVE_TIMEOUT
                                                           : TENON_COLLECTIVE_WORKS;
  const char* said = host->err_text(err);
  if (kind == TENON_COLLECTIVE_WORKS || !said || PyErr_Occurred()) return check(status, err);
  raise_failure(kind, said, err);
}

nb::dict record_dict(const tenon_group_record& record) {
  nb::dict dict;
  dict["sequence"] = record.sequence;
  dict["group"] = std::string(record.group, strnlen(record.group, sizeof record.group));
  dict["kind"] = record.kind;
  dict["dtype"] = host->dtype_name(record.dtype);
  dict["count"] = record.count;
  dict["reduce"] = record.reduce;
  dict["root"] = record.root;
  dict["site"] = std::string(record.site, strnlen(record.site, sizeof record.site));
  dict["begin_ns"] = record.begin_ns;
  dict["end_ns"] = record.end_ns;
  dict["status"] = record.status;
  return dict;
}

class RankGroup;

class Work {
 public:
  Work(const tenon_collectives_api& api, nb::object group, tenon_work work)
      : api_(api), group_(std::move(group)), work_(work) {}
  // Memory that the call uses is freed with this object: so it is waited for.
  ~Work() {
    nb::gil_scoped_release unlocked;
    tenon_err* err = host->err_create();
    api_.work_wait(work_, ~uint64_t{0}, err);
    host->err_destroy(err);
    api_.work_release(work_);
  }
  Work(const Work&) = delete;

  bool is_completed() const { return api_.work_is_completed(work_) != 0; }
  // False: it goes on for longer than that. Raises what the call raised.
  bool wait(double timeout);

 private:
  const tenon_collectives_api& api_;
  nb::object group_;  // lives as long, and may be closed meanwhile
  tenon_work work_;
};

class RankGroup {
 public:
  RankGroup(Store& store, const std::string& name, int32_t rank, int32_t size, double timeout,
            uint32_t transport)
      : api_(collectives()) {
    tenon_group_options options = {};
    options.struct_size = sizeof options;
    options.rank = rank;
    options.size = size;
    options.transport = transport;
    options.name = name.c_str();
    options.timeout_ns = nanoseconds(timeout);
    options.is_interrupted = is_interrupted;
    call_unlocked(
        [&](tenon_err* err) { return api_.group_create(store.handle(), &options, &group_, err); });
  }
  RankGroup(const tenon_collectives_api& api, tenon_rank_group group) : api_(api), group_(group) {}
  ~RankGroup() { close(); }
  RankGroup(const RankGroup&) = delete;

  void close() {
    if (calls_ > 0) {
      raise_error(PyExc_RuntimeError,
                  "the group is in use by another thread; wait until its call returns");
      throw nb::python_error();
    }
    tenon_rank_group group = std::exchange(group_, nullptr);
    if (!group) return;
    nb::gil_scoped_release unlocked;
    api_.group_close(group);
  }
  // NULL: this rank is not in the list.
  std::unique_ptr<RankGroup> part(const std::string& name, std::vector<int32_t> ranks) {
    tenon_rank_group part = nullptr;
    run_unlocked([&](tenon_err* err) {
      return api_.group_part(group_, name.c_str(), ranks.data(),
                             static_cast<uint32_t>(ranks.size()), &part, err);
    });
    return part ? std::make_unique<RankGroup>(api_, part) : nullptr;
  }

  void run(int32_t kind, nb::handle src, nb::handle dst, int32_t reduce, int32_t root,
           const std::string& site) {
    Call call(*this, kind, src, dst, reduce, root, site);
    run_unlocked([&](tenon_err* err) { return api_.run(group_, &call.call, err); });
    call.bump();
  }
  void run_list(int32_t kind, nb::list sends, nb::list receives, int32_t root,
                const std::string& site) {
    Call call(*this, kind, sends, receives, root, site);
    run_unlocked([&](tenon_err* err) { return api_.run(group_, &call.call, err); });
    call.bump();
  }

  void abort(const std::string& text) {
    if (!group_) return;
    ++calls_;
    {
      nb::gil_scoped_release unlocked;
      api_.abort(group_, text.c_str());
    }
    --calls_;
  }
  void check_work(tenon_status status, const ErrorSink& err) const {
    if (group_)
      check_group(api_, group_, status, err);
    else if (status != TENON_OK)
      check_orphan(status, err);
  }
  // (kind, text) of what has ended the group; kind 0: it works.
  nb::tuple failure() {
    require_open();
    std::string text;
    const int32_t kind = api_.failure(group_, take_bytes, &text);
    return nb::make_tuple(kind, text);
  }
  nb::list records() {
    require_open();
    std::vector<tenon_group_record> records(2048);
    records.resize(std::min<size_t>(api_.records(group_, records.data(), 2048), 2048));
    nb::list list;
    for (const tenon_group_record& record : records) list.append(record_dict(record));
    return list;
  }
  nb::dict counters() {
    require_open();
    tenon_group_counters counters;
    api_.counters(group_, &counters);
    nb::dict dict;
    dict["calls"] = counters.calls;
    dict["bytes_sent"] = counters.bytes_sent;
    dict["bytes_received"] = counters.bytes_received;
    dict["waiting_ns"] = counters.waiting_ns;
    return dict;
  }
  nb::list peers() {
    require_open();
    std::vector<tenon_group_peer> peers(api_.peers(group_, nullptr, 0));
    api_.peers(group_, peers.data(), static_cast<uint32_t>(peers.size()));
    nb::list list;
    for (const tenon_group_peer& peer : peers) {
      nb::dict dict;
      dict["rank"] = peer.rank;
      dict["is_here"] = peer.is_here != 0;
      dict["heard_ns"] = peer.heard_ns;
      dict["last"] = record_dict(peer.last);
      list.append(dict);
    }
    return list;
  }

 private:
  // A call and what it writes into.
  struct Call {
    Call(const RankGroup& group, int32_t kind, nb::handle src, nb::handle dst, int32_t reduce,
         int32_t root, const std::string& site) {
      tenon_tensor* from = group.use(src);
      tenon_tensor* to = group.use(dst);
      const bool is_by_result = kind == TENON_CALL_REDUCE_SCATTER || kind == TENON_CALL_BROADCAST;
      const tenon_tensor* counted = is_by_result ? to : from;
      begin(kind, root, site);
      call.src = from ? from->data : nullptr;
      call.dst = to ? to->data : nullptr;
      call.count = counted ? static_cast<uint64_t>(counted->numel) : 0;
      call.dtype = counted ? counted->dtype : 0;
      call.reduce = reduce;
      if (to) written.push_back(to);
    }
    Call(const RankGroup& group, int32_t kind, nb::list sends, nb::list receives, int32_t root,
         const std::string& site) {
      begin(kind, root, site);
      const auto add = [&](nb::list pairs, uint32_t transfer_kind) {
        for (nb::handle pair : pairs) {
          tenon_tensor* tensor = group.use(nb::cast<nb::object>(pair[0]));
          const auto count = static_cast<uint64_t>(tensor->numel);
          call.dtype = tensor->dtype;
          transfers.push_back({transfer_kind, nb::cast<int32_t>(pair[1]), tensor->data, count});
          if (transfer_kind == TENON_TRANSFER_SEND) call.count += count;
          if (transfer_kind == TENON_TRANSFER_RECV) written.push_back(tensor);
        }
      };
      add(sends, TENON_TRANSFER_SEND);
      add(receives, TENON_TRANSFER_RECV);
      call.transfers = transfers.data();
      call.transfer_count = static_cast<uint32_t>(transfers.size());
    }
    void begin(int32_t kind, int32_t root, const std::string& site) {
      call = {};
      call.struct_size = sizeof call;
      call.kind = kind;
      call.root = root;
      call.site = site.c_str();
    }
    void bump() const {
      for (tenon_tensor* tensor : written) host->tensor_bump_version(tensor);
    }
    tenon_group_call call;
    std::vector<tenon_transfer> transfers;
    std::vector<tenon_tensor*> written;
  };

  friend nb::object start(nb::object, int32_t, nb::handle, nb::handle, int32_t, int32_t,
                          const std::string&);
  friend nb::object start_list(nb::object, int32_t, nb::list, nb::list, int32_t,
                               const std::string&);

  void require_open() const {
    if (!group_) throw nb::value_error("the group was closed");
  }

  // The package has seen to shapes; what would touch wrong memory is looked at here.
  tenon_tensor* use(nb::handle object) const {
    require_open();
    if (object.is_none()) return nullptr;
    tenon_tensor* tensor = tensor_argument(object, "collective");
    const char* wrong = nullptr;
    if (tensor->device != host->device_host()) wrong = "is not in the host's memory";
    if (!(tensor->flags & TENON_TENSOR_CONTIGUOUS)) wrong = "is not contiguous; use .contiguous()";
    if (wrong) {
      raise_error(PyExc_ValueError, "the tensor %s", wrong);
      throw nb::python_error();
    }
    return tensor;
  }

  template <class Function>
  void run_unlocked(Function&& function) {
    require_open();
    ErrorSink err;
    tenon_status status;
    ++calls_;
    {
      nb::gil_scoped_release unlocked;
      status = function(static_cast<tenon_err*>(err));
    }
    --calls_;
    check_group(api_, group_, status, err);
  }

  nb::object begin(nb::object self, const Call& call) {
    tenon_work work = nullptr;
    run_unlocked([&](tenon_err* err) { return api_.start(group_, &call.call, &work, err); });
    call.bump();
    return nb::cast(new Work(api_, std::move(self), work), nb::rv_policy::take_ownership);
  }

  const tenon_collectives_api& api_;
  tenon_rank_group group_ = nullptr;
  int calls_ = 0;  // under way; guarded by the GIL
};

bool Work::wait(double timeout) {
  uint64_t left = nanoseconds(timeout);
  for (;;) {
    const uint64_t slice = left < 200'000'000 ? left : 200'000'000;
    ErrorSink err;
    tenon_status status;
    {
      nb::gil_scoped_release unlocked;
      status = api_.work_wait(work_, slice, err);
    }
    if (api_.work_is_completed(work_)) {
      if (status == TENON_DEADLINE_EXCEEDED) {  // it was completed just now
        host->err_clear(err);
        status = api_.work_wait(work_, 0, err);
      }
      nb::cast<RankGroup&>(group_).check_work(status, err);
      return true;
    }
    host->err_clear(err);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left <= slice) return false;
    if (left != ~uint64_t{0}) left -= slice;
  }
}

nb::object start(nb::object self, int32_t kind, nb::handle src, nb::handle dst, int32_t reduce,
                 int32_t root, const std::string& site) {
  RankGroup& group = nb::cast<RankGroup&>(self);
  return group.begin(self, RankGroup::Call(group, kind, src, dst, reduce, root, site));
}
nb::object start_list(nb::object self, int32_t kind, nb::list sends, nb::list receives,
                      int32_t root, const std::string& site) {
  RankGroup& group = nb::cast<RankGroup&>(self);
  return group.begin(self, RankGroup::Call(group, kind, sends, receives, root, site));
}

}  // namespace

void add_distributed_types(nb::module_& module) {
  nb::class_<StoreServer>(module, "StoreServer")
      .def(nb::init<std::optional<std::string>, uint32_t, nb::bytes>(), nb::arg("address").none(),
           nb::arg("port"), nb::arg("secret"))
      .def("close", &StoreServer::close)
      .def_prop_ro("port", &StoreServer::port);
  nb::class_<Store>(module, "Store")
      .def(nb::init<int32_t, std::string, uint32_t, nb::bytes, double>(), nb::arg("kind"),
           nb::arg("where"), nb::arg("port"), nb::arg("secret"), nb::arg("timeout"))
      .def("set", &Store::set)
      .def("get", &Store::get)
      .def("add", &Store::add)
      .def("compare_set", &Store::compare_set)
      .def("delete", &Store::erase);
  nb::class_<Work>(module, "GroupWork")
      .def("is_completed", &Work::is_completed)
      .def("wait", &Work::wait);
  nb::class_<RankGroup>(module, "RankGroup")
      .def(nb::init<Store&, const std::string&, int32_t, int32_t, double, uint32_t>(),
           nb::arg("store"), nb::arg("name"), nb::arg("rank"), nb::arg("size"), nb::arg("timeout"),
           nb::arg("transport") = 0)
      .def("close", &RankGroup::close)
      .def("part", &RankGroup::part)
      .def("run", &RankGroup::run, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
           nb::arg(), nb::arg())
      .def("run_list", &RankGroup::run_list)
      .def("start", &start, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
           nb::arg())
      .def("start_list", &start_list)
      .def("abort", &RankGroup::abort)
      .def("failure", &RankGroup::failure)
      .def("records", &RankGroup::records)
      .def("counters", &RankGroup::counters)
      .def("peers", &RankGroup::peers);
}

}  // namespace tenon::python
