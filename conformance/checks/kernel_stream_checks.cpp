// SPDX-License-Identifier: Apache-2.0
// Kernels on streams: in their place between other work, at once with kernels of another stream,
// and as part of a graph.
#include "operators/comparison.hpp"
#include "operators/stream_work.hpp"
#include "subject/device.hpp"

namespace tenon::kit {
namespace {

// Ends the check as absent before anything is loaded.
template <class Group>
Session& need_group(Session& session, int number) {
  Plugin plugin(session);
  plugin.need_group<Group>(number);
  return session;
}

// Tensors of the same sizes with all bytes 0.
Tensors blanks(Engine& engine, const Tensors& like) {
  Tensors made;
  for (const Tensor& tensor : like)
    made.push_back(filled(engine, tensor->dtype, shape_of(tensor), 0));
  return made;
}

void expect_answer(Engine& engine, const Answer& want, const Tensors& got, const std::string& what,
                   const std::string& fix) {
  for (size_t i = 0; i < want.outs.size(); ++i) {
    const std::string problem = difference(engine, want.outs[i], got[i]);
    if (!engine.session().expect(problem.empty(), what, problem, fix)) return;
  }
}

// What the kernel reads comes just before it and goes just behind it.
void between(Engine& engine, const Subject& subject, tenon_stream stream, BusyWork& busy) {
  for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
    Arguments made = make_arguments(engine, sample, subject.dtypes[0]);
    const Answer want = engine.call(sample.op, made.cpu);
    if (!want.ok() || made.storages.empty()) continue;
    engine.session().step(sample.text + ", between other work of its stream");
    if (!engine.call(sample.op, made.device).ok()) continue;  // compiled now, if it has to be
    const Tensors right = copies_of(engine, made.storages), blank = blanks(engine, made.storages);
    copy_all(engine, made.storages, blank);
    sync(engine, stream);
    busy.queue();
    copy_all(engine, made.storages, right);
    const Answer got = engine.call(sample.op, made.device);
    copy_all(engine, made.storages, blank);
    sync(engine, stream);
    engine.tally(got.ok());
    if (got.ok())
      expect_answer(engine, want, got.outs,
                    sample.text + ": it runs behind what was queued before it, and before the rest",
                    "queue the kernel on ctx_stream(ctx), launch it on request->stream");
    return;
  }
}

void kernels(Session& session) {
  Engine engine(need_group<tenon_async_api>(session, TENON_GROUP_ASYNC));
  HostStream stream(engine.device());
  BusyWork busy(engine);
  for_each_subject(engine, Route::kNative,
                   [&](const Subject& subject) { between(engine, subject, stream, busy); });
  engine.conclude();
}

// The first of the large samples, or of all: kernels that run at once have to take some time.
std::vector<Sample> one_of(const tenon_op* op) {
  for (SampleKind kind : {SampleKind::kLarge, SampleKind::kGeneral})
    for (Sample& sample : samples_of(op, kind))
      if (kind == SampleKind::kGeneral || sample.text.find("65535") != std::string::npos)
        return {sample};
  return {};
}

// The same kernel on two streams at once, with other values on each.
void overlap(Session& session) {
  constexpr int kRounds = 5;
  Engine engine(need_group<tenon_async_api>(session, TENON_GROUP_ASYNC));
  HostStream streams[] = {HostStream(engine.device()), HostStream(engine.device())};
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    for (const Sample& sample : one_of(subject.op)) {
      session.step(sample.text + ", on two streams at once");
      Arguments made[2];
      std::string alone[2];
      bool is_ready = true;
      for (uint64_t i = 0; i < 2; ++i) {
        made[i] = make_arguments(engine, sample, subject.dtypes[0], Layout::kContiguous,
                                 Range::kSmall, i);
        const Answer first = engine.call(sample.op, made[i].device),
                     again = engine.call(sample.op, made[i].device);
        is_ready &= first.ok() && again.ok();
        if (!is_ready) break;
        alone[i] = bytes_of(engine, first);
        is_ready = alone[i] == bytes_of(engine, again);  // it may be one of those that vary
      }
      is_ready &= alone[0] != alone[1];
      engine.tally(is_ready);
      if (!is_ready) continue;
      sync(engine, nullptr);
      std::vector<Answer> answers;
      for (int i = 0; i < 2 * kRounds; ++i) {
        OnStream on(engine, streams[i % 2]);
        answers.push_back(engine.call(sample.op, made[i % 2].device));
      }
      sync(engine, nullptr);
      for (size_t i = 0; i < answers.size(); ++i)
        if (!session.expect(answers[i].ok() && bytes_of(engine, answers[i]) == alone[i % 2],
                            sample.text + ": the same as without the kernels of another stream",
                            answers[i].ok() ? "another answer" : answers[i].error,
                            "memory that a kernel works in is one call's: host->scratch"))
          return;
    }
  });
  engine.conclude();
}

// The device's graphs, borrowed from the host, with memory held for what they record.
class Recorder {
 public:
  explicit Recorder(Engine& engine) : engine_(engine) {
    const void* table = nullptr;
    Error error;
    const tenon_status status =
        host->device_group_borrow(engine.device(), TENON_GROUP_GRAPH, &table, &handle_, error);
    engine.session().require(status == TENON_OK, "the host lends the group `graph`",
                             describe(status, error));
    api_ = static_cast<const tenon_graph_api*>(table);
  }
  ~Recorder() { host->device_group_return(engine_.device(), TENON_GROUP_GRAPH); }
  Recorder(const Recorder&) = delete;

  // NULL: `work` says that it cannot be recorded.
  tenon_graph record(tenon_stream stream, const std::function<bool()>& work) {
    Error error;
    tenon_graph graph = nullptr;
    check(host->memory_hold_begin(engine_.device(), stream, &hold_, error), error,
          "memory_hold_begin");
    check(api_->capture_begin(handle_, stream, error), error, "capture_begin");
    const bool is_recorded = work();
    const tenon_status status =
        api_->capture_end(handle_, stream, is_recorded ? &graph : nullptr, error);
    host->memory_hold_end(engine_.device(), hold_, Error());
    if (is_recorded) check(status, error, "capture_end");
    if (!graph) host->memory_hold_release(engine_.device(), hold_);
    return graph;
  }
  void launch(tenon_graph graph, tenon_stream stream) {
    Error error;
    check(api_->graph_launch(handle_, graph, stream, error), error, "graph_launch");
  }
  void destroy(tenon_graph graph) {
    api_->graph_destroy(handle_, graph);
    host->memory_hold_release(engine_.device(), hold_);
  }

 private:
  void check(tenon_status status, const Error& error, const char* what) {
    engine_.session().require(status == TENON_OK, std::string(what) + " succeeds",
                              describe(status, error));
  }

  Engine& engine_;
  const tenon_graph_api* api_ = nullptr;
  tenon_device handle_ = nullptr;
  uint64_t hold_ = 0;
};

// Kernels that wait for the device cannot be recorded, so only plain ones are tried.
bool can_be_recorded(const Subject& subject) {
  static const std::set<std::string> kOthers = {"sum",    "matmul",           "clone",
                                                "cast",   "primitive_copy",   "primitive_unary",
                                                "concat", "primitive_binary", "primitive_reduce"};
  return subject.def().shape == TENON_SHAPE_BROADCAST || kOthers.count(subject.name) != 0;
}

// False: it was not recorded.
bool replay(Engine& engine, Recorder& recorder, const Subject& subject, const Sample& sample,
            HostStream (&streams)[2], BusyWork& busy) {
  static const char kFix[] =
      "queue kernels on ctx_stream(ctx), and record what is queued there; graph_launch runs all of "
      "it on the stream that it gets";
  Session& session = engine.session();
  session.step(sample.text + ", captured and launched");
  Arguments made = make_arguments(engine, sample, subject.dtypes[0]),
            other = make_arguments(engine, sample, subject.dtypes[0], Layout::kContiguous,
                                   Range::kSmall, 1);
  const Answer want = engine.call(sample.op, made.cpu), then = engine.call(sample.op, other.cpu);
  if (!want.ok() || !then.ok() || made.storages.empty()) return false;
  const Tensors blank = blanks(engine, made.storages);
  Tensors rooms, outs;
  for (const Tensor& out : want.outs) {
    rooms.push_back(guarded_room(engine, out, 0x7b));
    outs.push_back(inside(engine, rooms.back(), out));
  }
  if (!engine.call(sample.op, made.device, outs).ok()) return false;  // compiled now
  std::vector<std::string> before;
  for (size_t i = 0; i < outs.size(); ++i) {
    engine.copy(rooms[i], guarded_room(engine, outs[i], 0x7b));
    before.push_back(bytes_of(engine, rooms[i]));
  }
  sync(engine, nullptr);
  const tenon_graph graph = recorder.record(streams[0], [&] {
    OnStream on(engine, streams[0]);
    return engine.call(sample.op, made.device, outs).ok();
  });
  if (!graph) return false;
  sync(engine, nullptr);
  for (size_t i = 0; i < outs.size(); ++i)
    session.expect(bytes_of(engine, rooms[i]) == before[i],
                   sample.text + ": what is captured does not run", "its result was written", kFix);
  recorder.launch(graph, streams[0]);
  sync(engine, streams[0]);
  expect_answer(engine, want, outs, sample.text + ": graph_launch runs the kernel", kFix);
  {
    OnStream on(engine, streams[1]);
    busy.queue();
    copy_all(engine, made.storages, other.storages);
    recorder.launch(graph, streams[1]);
    copy_all(engine, made.storages, blank);
  }
  sync(engine, nullptr);
  expect_answer(engine, then, outs,
                sample.text + ": graph_launch keeps the kernel's place in another stream", kFix);
  recorder.destroy(graph);
  return true;
}

void graph_kernels(Session& session) {
  Engine engine(need_group<tenon_graph_api>(session, TENON_GROUP_GRAPH));
  Recorder recorder(engine);
  HostStream streams[] = {HostStream(engine.device()), HostStream(engine.device())};
  OnStream none(engine, nullptr);
  BusyWork busy(engine);
  for_each_subject(engine, Route::kNative, [&](const Subject& subject) {
    if (!can_be_recorded(subject)) return;
    for (const Sample& sample : samples_of(subject.op, SampleKind::kGeneral)) {
      const bool was_recorded = replay(engine, recorder, subject, sample, streams, busy);
      engine.tally(was_recorded);
      if (was_recorded || session.subject_failed()) return;
    }
  });
  engine.conclude();
}

}  // namespace

const Checks& kernel_stream_checks() {
  static const char kNeeds[] =
      "lifecycle.sync memory.copy_d2d async.order async.event_wait ops.values ops.inputs_kept";
  static const Checks checks = {
      {"async.kernels", "Kernels run in their place in the stream.",
       "abi.h section 5, tenon_device_api: order", "", kNeeds, kernels},
      {"async.kernels_overlap", "Kernels on two streams do not disturb one another.",
       "abi.h section 8, scratch", "", kNeeds, overlap},
      {"graph.kernels", "Kernels are captured, and run where the graph is launched.",
       "abi.h section 5, tenon_graph_api", "",
       "lifecycle.sync memory.copy_d2d async.order ops.values graph.replay graph.drop "
       "async.kernels",
       graph_kernels},
  };
  return checks;
}

}  // namespace tenon::kit
