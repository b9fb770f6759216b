// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.runtime.WorkGraph: a stream's work, recorded once and queued again as one piece.
#include "group.hpp"
#include "modules.hpp"
#include "stream.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

class Graph {
 public:
  explicit Graph(tenon_device_id device) : group_(device), stream_(device, 0) {}
  ~Graph() { reset(); }  // no other thread is inside: a call holds the Python object
  Graph(const Graph&) = delete;

  tenon_device_id device() const { return group_.device(); }

  // From here to end(), the calling thread's work is recorded.
  void begin() {
    if (graph_ || hold_ != 0)
      fail(
          "the graph was captured already, or is being captured; make another one, or call "
          "reset()");
    ErrorSink err;
    check(host->memory_hold_begin(device(), stream_.handle(), &hold_, err), err);
    try {
      group_.run("capture_begin", [&](tenon_err* failure) {
        return group_->capture_begin(group_.handle(), stream_.handle(), failure);
      });
    } catch (...) {
      release_memory();
      throw;
    }
    is_capturing_ = true;
    outer_ = host->stream_set_current(device(), stream_.handle());
  }

  void end() {
    if (!is_capturing_) fail("nothing is being captured; use `with graph.capture():`");
    leave();
    tenon_graph graph = nullptr;
    try {
      group_.run("capture_end", [&](tenon_err* err) {
        return group_->capture_end(group_.handle(), stream_.handle(), &graph, err);
      });
      if (!graph) {
        raise_error(PyExc_RuntimeError,
                    "capture_end returned no graph; this is a bug in the plugin");
        throw nb::python_error();
      }
      graph_ = graph;
      ErrorSink err;
      check(host->memory_hold_end(device(), hold_, err), err);
    } catch (...) {
      reset();
      throw;
    }
  }

  // What was recorded is dropped; the stream is usable again.
  void abandon() {
    if (!is_capturing_) return;
    leave();
    ErrorSink err;
    group_->capture_end(group_.handle(), stream_.handle(), nullptr, err);
    host->err_clear(err);
    release_memory();
  }

  void replay(const Stream* stream) {
    if (!graph_) fail("the graph is empty; capture something with `with graph.capture():` first");
    tenon_stream target = stream_argument(device(), stream);
    group_.run("graph_launch", [&](tenon_err* err) {
      return group_->graph_launch(group_.handle(), graph_, target, err);
    });
  }

  // Forget what was captured, after its last replay has finished, and free its memory.
  void reset() {
    group_.require_idle("the graph");
    abandon();
    tenon_graph graph = std::exchange(graph_, nullptr);
    if (graph) {
      nb::gil_scoped_release unlocked;
      if (group_.settle()) group_->graph_destroy(group_.handle(), graph);
    }
    release_memory();
  }

  bool is_empty() const { return !graph_; }

 private:
  [[noreturn]] static void fail(const char* text) {
    raise_error(PyExc_RuntimeError, "%s", text);
    throw nb::python_error();
  }
  void leave() {
    host->stream_set_current(device(), outer_);
    is_capturing_ = false;
  }
  void release_memory() {
    if (hold_ != 0) host->memory_hold_release(device(), std::exchange(hold_, 0));
  }

  Group<tenon_graph_api, TENON_GROUP_GRAPH> group_;
  Stream stream_;
  tenon_stream outer_ = nullptr;
  bool is_capturing_ = false;
  tenon_graph graph_ = nullptr;
  uint64_t hold_ = 0;
};

}  // namespace

void add_graph_type(nb::module_& module) {
  nb::class_<Graph>(module, "Graph")
      .def(
          "__init__", [](Graph* self, nb::handle device) { new (self) Graph(device_id(device)); },
          nb::arg("device").none() = nb::none())
      .def_prop_ro("device", [](const Graph& self) { return device_value(self.device()); })
      .def_prop_ro("is_empty", &Graph::is_empty)
      .def("begin", &Graph::begin)
      .def("end", &Graph::end)
      .def("abandon", &Graph::abandon)
      .def("replay", &Graph::replay, nb::arg("stream").none() = nb::none())
      .def("reset", &Graph::reset);
}

}  // namespace tenon::python
