// SPDX-License-Identifier: Apache-2.0
// Faults of the group subgraph.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "../runtime/executable.hpp"
#include "tables.hpp"

namespace reference {
namespace {

// Runs an executable with something else in its request.
template <class Change>
tenon_status run_changed(tenon_device device, const tenon_executable_request* request,
                         tenon_err* err, Change&& change) {
  tenon_executable_request changed = *request;
  change(changed);
  return kSubgraph.executable_run(device, &changed, err);
}

// Queues work behind a run.
tenon_status then(tenon_device device, const tenon_executable_request* request, tenon_err* err,
                  Work work) {
  const tenon_status status = kSubgraph.executable_run(device, request, err);
  if (status != TENON_OK) return status;
  return enqueue(device, request->stream, {TENON_PROFILE_KERNEL, "fault", 0, std::move(work)}, err);
}

template <class Value>
const Value* as_understood(const Value* request, Value& copy) {
  copy = *request;
  copy.must_understand = 0;
  return &copy;
}

}  // namespace

FAULT(claim_writes_past_end) {
  tables.subgraph.claim = [](tenon_device device, const tenon_subgraph* offered, uint32_t* parts,
                             tenon_err* err) {
    const tenon_status status = kSubgraph.claim(device, offered, parts, err);
    parts[offered->nsteps] = 0;
    return status;
  };
}

FAULT(executable_not_exact) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    void* first = request->outputs[0]->data;
    return then(device, request, err, [first] {
      static_cast<char*>(first)[0] ^= 1;  // the last bit of the first element
      return Result{};
    });
  };
}

FAULT(executable_past_end) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    const tenon_tensor& out = *request->outputs[0];
    char* end = static_cast<char*>(out.data) +
                static_cast<uint64_t>(out.numel) * tenon::host->dtype_size(out.dtype);
    return then(device, request, err, [end] {
      std::memset(end, 0, 4);
      return Result{};
    });
  };
}

FAULT(executable_writes_input) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    void* first = request->inputs[0]->data;
    return then(device, request, err, [first] {
      static_cast<char*>(first)[0] ^= 1;
      return Result{};
    });
  };
}

FAULT(executable_ignores_stream) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    return run_changed(device, request, err,
                       [](tenon_executable_request& changed) { changed.stream = nullptr; });
  };
}

FAULT(executable_keeps_request) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    return enqueue(
        device, request->stream,
        {TENON_PROFILE_KERNEL, "executable", 0,
         [device, inputs = request->inputs, outputs = request->outputs, now = *request]() mutable {
           now.inputs = inputs;
           now.outputs = outputs;
           now.stream = nullptr;
           return Result{kSubgraph.executable_run(device, &now, nullptr), ""};
         }},
        err);
  };
}

FAULT(executable_one_workspace) {
  // What a run keeps between its steps lies in the workspace of the run before.
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    static std::map<tenon_executable, void*> first;
    static std::mutex mutex;
    return run_changed(device, request, err, [](tenon_executable_request& changed) {
      std::lock_guard lock(mutex);
      changed.workspace = first.try_emplace(changed.executable, changed.workspace).first->second;
    });
  };
}

FAULT(executable_one_constant) {
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    static std::map<uint32_t, std::shared_ptr<ExecutableProgram>> known;  // by the number of steps
    const tenon_status status = kSubgraph.executable_create(device, graph, out, info, err);
    if (status == TENON_OK && graph->ninputs != 0 && graph->constants[0])
      (*out)->program = known.try_emplace(graph->nsteps, (*out)->program).first->second;
    return status;
  };
}

FAULT(executable_dies_early) {
  // Queued runs go by the executable's own list of steps.
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    const auto program = request->executable->program;
    return then(device, request, err, [program, out = request->outputs[0]->data] {
      if (program->steps.empty()) std::memset(out, 0, sizeof(float));
      return Result{};
    });
  };
  tables.subgraph.executable_destroy = [](tenon_device device, tenon_executable executable) {
    executable->program->steps.clear();
    kSubgraph.executable_destroy(device, executable);
  };
}

FAULT(executable_leaks) {
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    const tenon_status status = kSubgraph.executable_create(device, graph, out, info, err);
    static std::vector<std::vector<char>> code;  // that was made for it
    if (status == TENON_OK) code.emplace_back(64 << 10, 1);
    return status;
  };
}

FAULT(subgraph_step_size) {
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    if (graph->step_size == sizeof(tenon_subgraph_step))
      return kSubgraph.executable_create(device, graph, out, info, err);
    tenon_subgraph first = *graph;  // the others are not where it looks for them
    first.nsteps = 1;
    return kSubgraph.executable_create(device, &first, out, info, err);
  };
}

FAULT(understand_subgraph) {
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    tenon_subgraph copy;
    return kSubgraph.executable_create(device, as_understood(graph, copy), out, info, err);
  };
}

FAULT(understand_executable) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    tenon_executable_request copy;
    return kSubgraph.executable_run(device, as_understood(request, copy), err);
  };
}

FAULT(executable_create_fails) {
  tables.subgraph.executable_create = [](tenon_device, const tenon_subgraph*, tenon_executable*,
                                         tenon_executable_info*, tenon_err* err) {
    return tenon::fail(err, TENON_INTERNAL, "the compiler ended with code 3");
  };
}

FAULT(executable_run_fails) {
  tables.subgraph.executable_run = [](tenon_device device, const tenon_executable_request* request,
                                      tenon_err* err) {
    static std::atomic<int> runs{0};
    return runs++ % 2 ? tenon::fail(err, TENON_OUT_OF_MEMORY, "no room for its descriptors")
                      : kSubgraph.executable_run(device, request, err);
  };
}

FAULT(executable_reconsiders) {
  tables.subgraph.executable_create = [](tenon_device, const tenon_subgraph*, tenon_executable*,
                                         tenon_executable_info*, tenon_err* err) {
    return tenon::fail(err, TENON_UNSUPPORTED, "too many values for its memory");
  };
}

FAULT(executable_other_bits) {
  fault_executable_not_exact();
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    const tenon_status status = kSubgraph.executable_create(device, graph, out, info, err);
    info->flags = 0;
    return status;
  };
}

FAULT(executable_of_twelve) {
  // Its table has room for twelve steps; the one before the last is then left out.
  tables.subgraph.executable_create = [](tenon_device device, const tenon_subgraph* graph,
                                         tenon_executable* out, tenon_executable_info* info,
                                         tenon_err* err) {
    const tenon_status status = kSubgraph.executable_create(device, graph, out, info, err);
    if (status != TENON_OK || graph->nsteps < 12) return status;
    auto& steps = (*out)->program->steps;
    if (steps.size() >= 12) steps.erase(steps.end() - 2);
    return status;
  };
}

}  // namespace reference
