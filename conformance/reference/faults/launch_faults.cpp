// SPDX-License-Identifier: Apache-2.0
// Faults of kernels in streams and graphs, in memory that was used before, and after many calls.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "../kernels/elementwise.hpp"
#include "tables.hpp"

#define REPLACE(op, fn)                                                       \
  do {                                                                        \
    tables.kernel("tenon::" #op).boxed = fn##_boxed;                          \
    tables.kernel("tenon::" #op).typed = (tenon_typed_fn)(tenon_fn_##op)(fn); \
  } while (0)

namespace reference {
namespace {

// add, with something else in the place of the queue.
template <class Launch>
tenon_status add_by(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* out,
                    Launch&& launched) {
  return launched([body = binary(x, y, out, []<class T>(T a, T b) {
                     if constexpr (std::is_same_v<T, bool>)
                       return a || b;
                     else
                       return a + b;
                   })] { body(); });
}

tenon_status add_now(tenon_ctx*, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                     tenon_err*) {
  return add_by(x, y, out, [](auto body) { return body(), tenon_status{TENON_OK}; });
}
TENON_BOX_add(add_now_boxed, add_now)

    // On its stream, except while that is captured.
    tenon_status add_unless_captured(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                                     tenon_tensor* out, tenon_err* err) {
  const tenon_stream stream = tenon::host->ctx_stream(ctx);
  if (!stream || !stream->recording) return add(ctx, x, y, out, err);
  return add_now(ctx, x, y, out, err);
}
TENON_BOX_add(add_unless_captured_boxed, add_unless_captured)

    // The matrix is added to what lies in its memory.
    tenon_status matmul_adding(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                               tenon_tensor* out, tenon_err* err) {
  if (out->dtype != TENON_DTYPE_F32 || out->numel <= 4096) return matmul(ctx, x, y, out, err);
  const auto count = static_cast<size_t>(out->numel);
  auto before = std::make_shared<std::vector<float>>(count);
  float* to = static_cast<float*>(out->data);
  tenon_status status =
      launch(ctx, "matmul", err, [=] { std::memcpy(before->data(), to, count * sizeof(float)); });
  if (status == TENON_OK) status = matmul(ctx, x, y, out, err);
  if (status != TENON_OK) return status;
  return launch(ctx, "matmul", err, [=] {
    for (size_t i = 0; i < count; ++i) to[i] += (*before)[i];
  });
}
TENON_BOX_matmul(matmul_adding_boxed, matmul_adding)

    // Large maxima pass through memory that all calls share.
    std::vector<char> shared_scratch(1 << 20);
tenon_status maximum_in_shared(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                               tenon_tensor* out, tenon_err* err) {
  const uint64_t bytes = static_cast<uint64_t>(out->numel) * tenon::host->dtype_size(out->dtype);
  const tenon_status status = maximum(ctx, x, y, out, err);
  if (status != TENON_OK || bytes <= 16 << 10 || bytes > shared_scratch.size()) return status;
  return launch(ctx, "maximum", err, [to = out->data, bytes] {
    std::memcpy(shared_scratch.data(), to, bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::memcpy(to, shared_scratch.data(), bytes);
  });
}
TENON_BOX_maximum(maximum_in_shared_boxed, maximum_in_shared)

    // Sums start from what lies in scratch memory.
    tenon_status
    sum_trusting_scratch(tenon_ctx* ctx, const tenon_tensor* x, const int64_t* axis,
                         uint64_t axis_count, int32_t keepdim, tenon_tensor* out, tenon_err* err) {
  void* scratch = nullptr;
  tenon_status status = sum(ctx, x, axis, axis_count, keepdim, out, err);
  if (status != TENON_OK || out->dtype != TENON_DTYPE_F32 || out->numel == 0) return status;
  status = tenon::host->scratch(ctx, sizeof(float), &scratch, err);
  if (status != TENON_OK) return status;
  return launch(ctx, "sum", err, [scratch, to = static_cast<float*>(out->data)] {
    *to += *static_cast<const float*>(scratch);
  });
}
TENON_BOX_sum(sum_trusting_scratch_boxed, sum_trusting_scratch)

    tenon_status
    leaking_exp(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  lose_a_page();
  return exponential(ctx, x, out, err);
}
TENON_BOX_exp(leaking_exp_boxed, leaking_exp)

    std::atomic<int> exps{0};
tenon_status opening_exp(tenon_ctx* ctx, const tenon_tensor* x, tenon_tensor* out, tenon_err* err) {
  if (++exps % 50 == 0 && open("/dev/null", O_RDONLY) < 0)
    return tenon::fail(err, TENON_UNAVAILABLE, "no files left");
  return exponential(ctx, x, out, err);
}
TENON_BOX_exp(opening_exp_boxed, opening_exp)

    std::atomic<int> adds{0};
tenon_status add_shortening(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y,
                            tenon_tensor* out, tenon_err* err) {
  tenon_tensor shorter = *out;
  if (++adds % 20000 == 0 && shorter.numel > 0) --shorter.numel;
  return add(ctx, x, y, &shorter, err);
}
TENON_BOX_add(add_shortening_boxed, add_shortening)

}  // namespace

FAULT(kernel_ignores_stream) { REPLACE(add, add_now); }
FAULT(kernel_not_captured) { REPLACE(add, add_unless_captured); }
FAULT(matmul_adds) { REPLACE(matmul, matmul_adding); }
FAULT(shared_scratch) { REPLACE(maximum, maximum_in_shared); }
FAULT(trusts_scratch) { REPLACE(sum, sum_trusting_scratch); }
FAULT(launch_leaks) { REPLACE(exp, leaking_exp); }
FAULT(launch_opens_file) { REPLACE(exp, opening_exp); }
FAULT(rarely_short) { REPLACE(add, add_shortening); }

FAULT(launch_ignores_stream) {
  tables.compile.kernel_launch = [](tenon_device device, const tenon_launch_request* request,
                                    tenon_err* err) {
    tenon_launch_request changed = *request;
    changed.stream = nullptr;
    return kCompile.kernel_launch(device, &changed, err);
  };
}

namespace {
// The request itself, read when the launch's turn has come.
tenon_status launch_late(tenon_device device, const tenon_launch_request* request, tenon_err* err) {
  if (!request->stream || request->stream->recording)
    return kCompile.kernel_launch(device, request, err);
  return enqueue(device, request->stream,
                 {.work =
                      [device, now = *request]() mutable {
                        now.stream = nullptr;
                        return Result{kCompile.kernel_launch(device, &now, nullptr), ""};
                      }},
                 err);
}
}  // namespace

FAULT(launch_reads_late) { tables.compile.kernel_launch = launch_late; }

namespace {

// What a launch was given, kept.
struct KeptLaunch {
  tenon_launch_request request;
  std::vector<tenon_launch_arg> args;
  std::vector<std::array<char, 64>> values;

  explicit KeptLaunch(const tenon_launch_request& given)
      : request(given), args(given.args, given.args + given.nargs), values(given.nargs) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].kind != TENON_LAUNCH_VALUE) continue;
      std::memcpy(values[i].data(), args[i].p, args[i].bytes);
      args[i].p = values[i].data();
    }
    request.args = args.data();
    request.stream = nullptr;
  }
};

std::mutex programs_mutex;
std::map<tenon_kernel, tenon_program> program_of;  // of programs that were not destroyed

}  // namespace

FAULT(program_dies_early) {
  tables.compile.program_kernel = [](tenon_device device, tenon_program program, const char* name,
                                     tenon_kernel* out, tenon_err* err) {
    const tenon_status status = kCompile.program_kernel(device, program, name, out, err);
    std::lock_guard lock(programs_mutex);
    if (status == TENON_OK) program_of[*out] = program;
    return status;
  };
  tables.compile.program_destroy = [](tenon_device device, tenon_program program) {
    {
      std::lock_guard lock(programs_mutex);
      std::erase_if(program_of, [&](const auto& entry) { return entry.second == program; });
    }
    kCompile.program_destroy(device, program);
  };
  tables.compile.kernel_launch = [](tenon_device device, const tenon_launch_request* request,
                                    tenon_err* err) {
    if (!request->stream) return kCompile.kernel_launch(device, request, err);
    return enqueue(
        device, request->stream,
        {.work =
             [device, kept = std::make_shared<KeptLaunch>(*request)] {
               std::lock_guard lock(programs_mutex);
               if (program_of.count(kept->request.kernel) == 0) return Result{};
               return Result{kCompile.kernel_launch(device, &kept->request, nullptr), ""};
             }},
        err);
  };
}

FAULT(programs_by_length) {
  // Found by name and length of the source.
  tables.compile.program_create = [](tenon_device device, const tenon_program_request* request,
                                     tenon_program* out, tenon_err* err) {
    static std::map<std::pair<std::string, uint64_t>, std::string> sources;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    const std::string& source =
        sources
            .try_emplace({request->name, request->source_bytes},
                         std::string(request->source, request->source_bytes))
            .first->second;
    tenon_program_request changed = *request;
    changed.source = source.data();
    return kCompile.program_create(device, &changed, out, err);
  };
}

namespace {
std::map<tenon_graph, tenon_stream> captured;
}
FAULT(graph_on_its_capture) {
  tables.graph.capture_end = [](tenon_device device, tenon_stream stream, tenon_graph* out,
                                tenon_err* err) {
    const tenon_status status = kGraph.capture_end(device, stream, out, err);
    if (status == TENON_OK && out) captured[*out] = stream;
    return status;
  };
  tables.graph.graph_launch = [](tenon_device device, tenon_graph graph, tenon_stream,
                                 tenon_err* err) {
    return kGraph.graph_launch(device, graph, captured[graph], err);
  };
}

FAULT(graph_launch_leaks) {
  tables.graph.graph_launch = [](tenon_device device, tenon_graph graph, tenon_stream stream,
                                 tenon_err* err) {
    lose_a_page();
    return kGraph.graph_launch(device, graph, stream, err);
  };
}

}  // namespace reference
