// SPDX-License-Identifier: Apache-2.0
// The group `subgraph`. What an executable gives is compared with what the device's own kernels give for the steps.
#include <algorithm>
#include <cstring>
#include <functional>

#include "checks/subgraphs.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr uint64_t kUnknownFeature = 1ull << 63;

// Runs `check` with each part that the device claims of the kit's sub-graphs; absent if it claims none.
void for_each_part(Session& session, const std::function<void(Compiler&, const Part&)>& check) {
  Compiler compiler(session);
  size_t parts = 0;
  for (const Example& example : compiler.examples())
    for (const Part& part : compiler.claim(example)) {
      ++parts;
      if (session.failures() == 0) check(compiler, part);
    }
  if (parts == 0) session.absent("the device claims no step of the kit's sub-graphs");
}

void claim(Session& session) {
  Compiler compiler(session);
  for (const Example& example : compiler.examples()) {
    const Description all(compiler, example, 0, example.steps.size());
    constexpr uint32_t kGuard = 0xc3c3c3c3;
    std::vector<uint32_t> first(example.steps.size() + 2, 0), second = first;
    first.back() = second.back() = *(first.end() - 2) = *(second.end() - 2) = kGuard;
    session.step(text("claim of ", example.name));
    compiler.claim(all, first.data());
    session.expect(first.back() == kGuard && *(first.end() - 2) == kGuard,
                   text("claim of ", example.name, ": as many numbers as there are steps"),
                   "it wrote behind them", "write parts[0] to parts[nsteps - 1] only");
    compiler.claim(all, second.data());
    session.expect(first == second, text("claim of ", example.name, ": the same answer each time"),
                   "another answer the second time");
  }
}

void run(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    const Executable executable(compiler, part);
    session.step(text("executable_run of ", part.text()));
    Tensors outputs = compiler.outputs(part);
    compiler.run(executable, made.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    compiler.compare(part, executable, made.expected, outputs, "each run");
    const Run other = compiler.prepare(part, 2);
    outputs = compiler.outputs(part);
    compiler.run(executable, other.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    compiler.compare(part, executable, other.expected, outputs, "a second run");
  });
}

void bounds(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    const Executable executable(compiler, part);
    session.step(text("executable_run of ", part.text(), ", memory around its results"));
    constexpr int64_t kAround = 64;  // bytes
    Tensors wide, outputs;
    for (const Tensor& expected : made.expected) {
      const auto size = static_cast<int64_t>(host->dtype_size(expected->dtype));
      const int64_t margin = kAround / size;
      wide.push_back(compiler.filled(TENON_DTYPE_U8, {expected->numel * size + 2 * kAround}, 0xc3));
      outputs.push_back(compiler.engine().view(wide.back(), expected->dtype, shape_of(expected),
                                               dense_strides(shape_of(expected)), margin));
    }
    compiler.run(executable, made.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    for (size_t i = 0; i < wide.size(); ++i) {
      std::string bytes = bytes_of(compiler.engine(), wide[i]);
      const std::string before = bytes.substr(0, kAround),
                        after = bytes.substr(bytes.size() - kAround);
      const std::string guard(kAround, '\xc3');
      session.expect(before == guard && after == guard,
                     text(part.text(), ": memory beside result ", i, " stays as it is"),
                     before == guard ? "bytes behind it changed" : "bytes before it changed");
    }
  });
}

void inputs_kept(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    const Executable executable(compiler, part);
    std::vector<std::string> before;
    for (const Tensor& input : made.inputs) before.push_back(bytes_of(compiler.engine(), input));
    session.step(text("executable_run of ", part.text(), ", its inputs"));
    Tensors outputs = compiler.outputs(part);
    compiler.run(executable, made.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    for (size_t i = 0; i < before.size(); ++i)
      session.expect(bytes_of(compiler.engine(), made.inputs[i]) == before[i],
                     text(part.text(), ": input ", i, " stays as it is"), "other bytes");
  });
}

// Much work on the stream, and what the run reads comes last; then it is overwritten.
void order(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    const Executable executable(compiler, part);
    HostStream stream(compiler.device());
    session.step(text("executable_run of ", part.text(), " on a stream"));
    Tensors inputs, others;
    for (const Tensor& input : made.inputs) {
      inputs.push_back(compiler.filled(input->dtype, shape_of(input), 0));
      others.push_back(compiler.filled(input->dtype, shape_of(input), 0));
    }
    Tensors outputs = compiler.outputs(part);
    compiler.sync(nullptr);
    compiler.keep_busy();
    for (size_t i = 0; i < inputs.size(); ++i) compiler.engine().copy(inputs[i], made.inputs[i]);
    compiler.run(executable, inputs, outputs, stream);
    for (size_t i = 0; i < inputs.size(); ++i) compiler.engine().copy(inputs[i], others[i]);
    compiler.sync(stream);
    compiler.compare(part, executable, made.expected, outputs,
                     "a run between other work of its stream");
  });
}

// What the caller passed is gone once the call has returned, though the work is only queued.
void request(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    const Executable executable(compiler, part);
    HostStream stream(compiler.device());
    session.step(text("executable_run of ", part.text(), ", its request"));
    Tensors outputs = compiler.outputs(part);
    compiler.sync(nullptr);
    compiler.run(executable, made.inputs, outputs, stream, Compiler::kForgets);
    compiler.sync(stream);
    compiler.compare(part, executable, made.expected, outputs,
                     "a run whose request was overwritten after the call");
  });
}

// One executable, two streams: each run has a workspace of its own.
void overlap(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part, 1), other = compiler.prepare(part, 2);
    const Executable executable(compiler, part);
    session.step(text("executable_run of ", part.text(), ", its workspace"));
    if (const auto bytes = static_cast<int64_t>(executable.workspace_bytes()); bytes != 0) {
      const Tensor first = compiler.filled(TENON_DTYPE_U8, {bytes}, 0),
                   second = compiler.filled(TENON_DTYPE_U8, {bytes}, 0),
                   pattern = compiler.filled(TENON_DTYPE_U8, {bytes}, 0x5a);
      const Tensors outputs = compiler.outputs(part);
      compiler.run(executable, made.inputs, outputs, nullptr, Compiler::kKeeps, first);
      compiler.engine().copy(first, pattern);
      compiler.run(executable, made.inputs, outputs, nullptr, Compiler::kKeeps, second);
      compiler.sync(nullptr);
      session.expect(bytes_of(compiler.engine(), first) == bytes_of(compiler.engine(), pattern),
                     part.text() + ": a run writes to its own workspace alone",
                     "it wrote to that of an earlier run");
    }
    HostStream first(compiler.device()), second(compiler.device());
    session.step(text("executable_run of ", part.text(), " on two streams at once"));
    constexpr size_t kRuns = 32;
    std::vector<Tensors> outputs;
    for (size_t i = 0; i < kRuns; ++i) outputs.push_back(compiler.outputs(part));
    compiler.sync(nullptr);
    for (size_t i = 0; i < kRuns; ++i)
      compiler.run(executable, (i % 2 ? made : other).inputs, outputs[i],
                   i % 2 ? first.get() : second.get());
    compiler.sync(first);
    compiler.sync(second);
    for (size_t i = 0; i < kRuns; ++i)
      compiler.compare(part, executable, (i % 2 ? made : other).expected, outputs[i],
                       "runs on two streams");
  });
}

// Steps that are the same, with other constants.
void constants(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run first = compiler.prepare(part, 1), second = compiler.prepare(part, 2);
    session.step(text("executable_create of ", part.text(), " with constants"));
    const Executable one(compiler, part, first.inputs), two(compiler, part, second.inputs);
    Tensors outputs = compiler.outputs(part);
    compiler.run(two, second.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    compiler.compare(part, two, second.expected, outputs, "its own constants");
    outputs = compiler.outputs(part);
    compiler.run(one, first.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    compiler.compare(part, one, first.expected, outputs, "its own constants");
  });
}

void destroy(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    HostStream stream(compiler.device());
    Tensors outputs = compiler.outputs(part);
    compiler.sync(nullptr);
    session.step(text("executable_destroy of ", part.text(), " while a run is queued"));
    compiler.keep_busy();
    bool is_exact = false;
    {
      const Executable executable(compiler, part);
      is_exact = executable.is_exact();
      compiler.run(executable, made.inputs, outputs, stream);
    }
    compiler.sync(stream);
    compiler.compare(part, is_exact, made.expected, outputs,
                     "a run whose executable was destroyed meanwhile");
  });
}

void leak(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    auto churn = [&](int rounds) {
      for (int i = 0; i < rounds; ++i) const Executable executable(compiler, part);
    };
    const double start = now();
    churn(4);
    // A compiler may take its time.
    const int rounds = std::clamp(static_cast<int>(8 / std::max(now() - start, 1e-4)), 8, 2000);
    const Holdings before = holdings();
    session.step(text(rounds, " executables of ", part.text(), ", one after the other"));
    churn(rounds);
    const Holdings after = holdings();
    const std::string over = text("over ", rounds, " executables of ", part.text());
    session.expect(after.threads <= before.threads, "no threads stay " + over,
                   text(after.threads - before.threads, " more"),
                   "join them in executable_destroy");
    session.expect(after.files <= before.files, "no files stay open " + over,
                   text(after.files - before.files, " more"), "close them in executable_destroy");
    session.expect(after.resident - before.resident < (4 << 20), "no memory stays " + over,
                   text((after.resident - before.resident) >> 10, " KiB more"),
                   "free in executable_destroy what executable_create made");
  });
}

// A later host's steps are longer: what lies between them is not this plugin's.
void step_size(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Run made = compiler.prepare(part);
    session.step(text("executable_create of ", part.text(), " by a later host"));
    const Executable executable(compiler, part, {}, Executable::kLaterHost);
    Tensors outputs = compiler.outputs(part);
    compiler.run(executable, made.inputs, outputs, nullptr);
    compiler.sync(nullptr);
    compiler.compare(part, executable, made.expected, outputs, "steps of a later host");
  });
}

void expect_unsupported(Session& session, tenon_status status, const Error& error) {
  session.expect(status == TENON_UNSUPPORTED, "code 12 (UNSUPPORTED)", describe(status, error));
}

void understand(Session& session) {
  for_each_part(session, [&](Compiler& compiler, const Part& part) {
    const Executable executable(compiler, part);
    const Description described(compiler, *part.example, part.begin, part.end);
    tenon_subgraph graph = described.table();
    graph.must_understand = kUnknownFeature;
    std::vector<uint32_t> parts(graph.nsteps + 1);
    Error error;
    session.step("claim with an unknown must_understand bit");
    expect_unsupported(session,
                       compiler.api().claim(compiler.handle(), &graph, parts.data(), error), error);
    session.step("executable_create with an unknown must_understand bit");
    tenon_executable made = nullptr;
    tenon_executable_info info = {sizeof info, 0, 0};
    Error create_error;
    expect_unsupported(
        session,
        compiler.api().executable_create(compiler.handle(), &graph, &made, &info, create_error),
        create_error);
    session.step("executable_run with an unknown must_understand bit");
    const Run run = compiler.prepare(part);
    Tensors outputs = compiler.outputs(part);
    Error run_error;
    expect_unsupported(
        session,
        compiler.try_run(executable, run.inputs, outputs, nullptr, run_error, kUnknownFeature),
        run_error);
  });
}

}  // namespace

const Checks& subgraph_checks() {
  static const char kBasic[] = "lifecycle.sync memory.copy_grid ops.values ops.inputs_kept";
  static const char kQueued[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d async.order async.event_wait ops.values "
      "ops.inputs_kept";
  static const Checks checks = {
      {"subgraph.claim", "Steps are claimed, and nothing else is written.",
       "abi.h section 5, tenon_subgraph_api.claim", "", kBasic, claim},
      {"subgraph.run", "An executable gives what the steps give; the same bits where it says so.",
       "abi.h section 5, tenon_executable_info",
       "leave TENON_EXECUTABLE_EXACT away where bits may differ", kBasic, run},
      {"subgraph.bounds", "An executable writes its results and nothing else.",
       "abi.h section 5, tenon_executable_request", "", kBasic, bounds},
      {"subgraph.inputs_kept", "An executable leaves its inputs alone.",
       "abi.h section 5, tenon_executable_request", "", kBasic, inputs_kept},
      {"subgraph.order", "A run keeps its place in its stream.", "abi.h section 5, executable_run",
       "queue the work on request->stream", kQueued, order},
      {"subgraph.request", "A run reads its request before it returns.",
       "abi.h section 5, executable_run", "copy addresses out of the request", kQueued, request},
      {"subgraph.overlap", "Runs of one executable may overlap.", "abi.h section 5, executable_run",
       "keep what changes in a run in its workspace", kQueued, overlap},
      {"subgraph.constants", "Executables with other constants are others.",
       "abi.h section 5, tenon_subgraph.constants",
       "what is found by its steps has to be found by its constants, too", kBasic, constants},
      {"subgraph.destroy", "An executable may be destroyed while it runs.",
       "abi.h section 5, executable_destroy", "", kQueued, destroy},
      {"subgraph.leak", "Executables leave nothing behind.", "abi.h section 5, executable_destroy",
       "", kBasic, leak},
      {"subgraph.step_size", "Steps of a later host are read.",
       "abi.h section 5, tenon_subgraph.step_size",
       "step i lies i * step_size bytes behind the first", kBasic, step_size},
      {"subgraph.understand", "What is not understood is refused.",
       "abi.h section 5, must_understand",
       "call TENON_CHECK_UNDERSTOOD first in every function that takes a request", kBasic,
       understand},
  };
  return checks;
}

}  // namespace tenon::kit
