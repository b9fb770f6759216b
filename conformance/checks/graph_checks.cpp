// SPDX-License-Identifier: Apache-2.0
// Capture and replay.
#include "checks/work.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kBytes = 1 << 20;

class Capture {
 public:
  explicit Capture(Device& device)
      : device_(device), api_(device.plugin().need_group<tenon_graph_api>(TENON_GROUP_GRAPH)) {}

  void begin(tenon_stream stream) {
    Error error;
    device_.check(api_.capture_begin(device_.handle(), stream, error), error, "capture_begin");
  }
  tenon_graph end(tenon_stream stream) {
    tenon_graph graph = nullptr;
    Error error;
    device_.check(api_.capture_end(device_.handle(), stream, &graph, error), error, "capture_end");
    return graph;
  }
  void drop(tenon_stream stream) {
    Error error;
    device_.check(api_.capture_end(device_.handle(), stream, nullptr, error), error,
                  "capture_end with out == NULL");
  }
  void launch(tenon_graph graph, tenon_stream stream) {
    Error error;
    device_.check(api_.graph_launch(device_.handle(), graph, stream, error), error, "graph_launch");
  }
  void destroy(tenon_graph graph) { api_.graph_destroy(device_.handle(), graph); }

 private:
  Device& device_;
  const tenon_graph_api& api_;
};

bool holds(Device& device, const Buffer& buffer, unsigned char value, const std::string& what) {
  Bytes found = device.read(buffer);
  return device.session().expect(
      found.front() == value && found.back() == value, what,
      text("it holds ", hex(found.front()), " and ", hex(found.back()), ", not ", hex(value)));
}

void replay(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Capture capture(device);
  Stream stream(device);
  Buffer in = device.alloc(kBytes), middle = device.alloc(kBytes), out = device.alloc(kBytes);
  device.fill(in, 0x01);
  device.fill(middle, 0x02);
  device.fill(out, 0x03);
  device.sync();
  session.step("capture of two copies");
  capture.begin(stream);
  device.copy(middle, 0, in, 0, kBytes, stream);
  device.copy(out, 0, middle, 0, kBytes, stream);
  tenon_graph graph = capture.end(stream);
  session.require(graph, "capture_end gives a graph", "TENON_OK and NULL");
  device.sync(stream);
  holds(device, out, 0x03, "what is captured does not run");
  for (unsigned char round = 0x10; round < 0x15; ++round) {
    session.step(text("graph_launch number ", round - 0x0f));
    device.fill(in, round, stream);
    capture.launch(graph, stream);
    device.sync(stream);
    if (!holds(device, out, round, text("launch ", round - 0x0f, " runs all that was captured")))
      break;
  }
  session.step("two launches in a row, with work in between");
  device.fill(in, 0x21, stream);
  capture.launch(graph, stream);
  device.fill(in, 0x22, stream);
  capture.launch(graph, stream);
  device.fill(in, 0x23, stream);
  device.sync(stream);
  if (!session.failures()) holds(device, out, 0x22, "launches keep their place in the stream");
  session.step("graph_destroy");
  capture.destroy(graph);
}

// What is launched on another stream than that of its capture has its place there.
void other_stream(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Capture capture(device);
  Stream stream(device), other(device);
  Work work(device);
  Buffer in = device.alloc(kBytes), out = device.alloc(kBytes), filled = device.alloc(kBytes);
  device.fill(in, 0x01);
  device.fill(out, 0x02);
  device.fill(filled, 0x03);
  device.sync();
  session.step("capture of a copy and a fill");
  capture.begin(stream);
  device.copy(out, 0, in, 0, kBytes, stream);
  device.fill(filled, 0x04, stream);
  tenon_graph graph = capture.end(stream);
  device.sync();
  holds(device, filled, 0x03, "a fill that is captured does not run");
  for (unsigned char round = 0x10; round < 0x13 && !session.failures(); ++round) {
    session.step("graph_launch on another stream than that of the capture");
    work.queue(other, round);
    device.fill(in, round, other);
    capture.launch(graph, other);
    device.fill(in, 0x05, other);
    device.copy(work.result(), 0, filled, 0, kBytes, other);
    device.fill(filled, 0x06, other);
    device.sync(other);
    holds(device, out, round, "a launch keeps its place in the stream that it is given");
    unsigned char seen = 0;
    device.get(&seen, work.result(), kBytes - 1, 1);
    session.expect(seen == 0x04, "a fill of a graph runs in its place",
                   text("what comes next saw ", hex(seen), ", not 0x04"));
  }
  session.step("graph_destroy");
  device.sync();
  capture.destroy(graph);
}

void drop(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Capture capture(device);
  Stream stream(device);
  Buffer buffer = device.alloc(kBytes);
  device.fill(buffer, 0x01);
  device.sync();
  session.step("capture_end with out == NULL");
  capture.begin(stream);
  device.fill(buffer, 0x02, stream);
  capture.drop(stream);
  device.sync(stream);
  holds(device, buffer, 0x01, "what was captured is dropped");
  session.step("the stream after a dropped capture");
  device.fill(buffer, 0x03, stream);
  device.sync(stream);
  holds(device, buffer, 0x03, "the stream is usable again");
}

void sync_refused(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Capture capture(device);
  Stream stream(device);
  Buffer buffer = device.alloc(kBytes);
  capture.begin(stream);
  device.fill(buffer, 0x02, stream);
  session.step("sync of a stream that is being captured");
  Error error;
  tenon_status status = device.api().sync(device.handle(), stream, error);
  session.expect(status == TENON_FAILED_PRECONDITION, "code 9 (FAILED_PRECONDITION), at once",
                 describe(status, error), "look whether the stream is being captured, first");
  capture.drop(stream);
  device.sync(stream);
}

}  // namespace

const Checks& graph_checks() {
  static const char kNeeds[] = "lifecycle.sync memory.copy_d2d memory.fill_grid async.order";
  static const Checks checks = {
      {"graph.replay", "A graph runs all that was captured, at every launch.",
       "abi.h section 5, tenon_graph_api", "", kNeeds, replay},
      {"graph.other_stream", "A graph runs on the stream that graph_launch is given.",
       "abi.h section 5, graph_launch", "", kNeeds, other_stream},
      {"graph.drop", "A capture can be dropped.", "abi.h section 5, capture_end", "", kNeeds, drop},
      {"graph.sync_refused", "Waiting for a stream that is being captured is an error.",
       "abi.h section 5, capture_begin", "",
       "lifecycle.sync memory.copy_d2d memory.fill_grid async.order graph.drop", sync_refused},
  };
  return checks;
}

}  // namespace tenon::kit
