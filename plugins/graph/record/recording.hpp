// SPDX-License-Identifier: Apache-2.0
// One recording: the layer hands it every call of its thread, and it makes a program of them.
#pragma once

#include <tenon/services/graph.h>

#include <memory>
#include <unordered_set>

#include "program/program.hpp"
#include "record/alias_sets.hpp"
#include "record/frame.hpp"
#include "record/sources.hpp"

struct tenon_graph_region {
  tenon::graph::Graph graph;
  std::vector<const void*>
      passed;  // for each result the storage from outside that it shows, or NULL
  std::vector<tenon::graph::ValueId> imports;  // of the frame around it
};

namespace tenon::graph {

class Recording {
 public:
  Recording(tenon_tensor* const* inputs, uint32_t ninputs,
            const tenon_graph_recording_options& options);

  // -- calls, as the layer sees them ----------------------------------------------------------------
  // Before the call runs: what it reads and writes. Throws Error for what no program can hold. Returns which results are given.
  uint32_t begin_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                      const tenon_value* outs, uint32_t nouts);
  // When it has succeeded.
  void end_call(const tenon_value* outs);
  bool is_suspended() const { return frame().is_suspended; }
  // Results of calls that are not recorded; nothing recorded may use them.
  void see_unrecorded(const tenon_value* outs, uint32_t nouts);

  // -- regions ----------------------------------------------------------------------------------------
  void begin_region(tenon_tensor* const* inputs, uint32_t ninputs);
  // The memory of these, for which clones stand, may not be read in the region.
  void hide(tenon_tensor* const* tensors, tenon_tensor* const* clones, uint32_t count);
  tenon_graph_region* end_region(tenon_tensor* const* results, uint32_t nresults);
  void suspend();
  void drop_frame();  // of a region that was not ended, or at the end of a suspension
  // The result may be the original's memory; it counts from `commit_aliases` on.
  void may_alias(tenon_tensor* result, tenon_tensor* original);
  void commit_aliases() { alias_sets_.commit(); }
  // Adds the step; its results stand for new values. `own` inputs of the regions are not imports.
  void add_structural(Step step, std::vector<tenon_graph_region*> regions,
                      tenon_tensor* const* results, uint32_t nresults);
  ValueId value_of(tenon_tensor* tensor) { return resolve(frames_.size() - 1, tensor); }

  // -- the rest ---------------------------------------------------------------------------------------
  // The recording cannot succeed any more; the first reason counts.
  void fail(const std::string& reason);
  // It has given up: what is called is not recorded any more, and does not fail for it.
  bool is_over() const {
    return options_.flags & TENON_GRAPH_RECORDING_GIVES_UP && !failure_.empty() &&
           frames_.size() == 1;
  }
  void note(uint32_t notes) { notes_ |= notes; }
  // An operator reads the tensor's data on the host (record/host_reads.cpp). Throws Error, with the text, unless they follow from leaves; whether
  // these are constants of the program is known when it is settled.
  void read_on_host(tenon_tensor* tensor, const std::string& text);
  // .grad of the tensor is about to be assigned.
  void begin_grad(tenon_tensor* tensor);
  // " at train.py:12", or "".
  std::string where() const { return sources_.where(); }
  ProgramPtr finish(tenon_tensor* const* results, uint32_t nresults);
  // Drops what nothing but the program holds. Call it when the recording is gone.
  static void keep_what_is_held(Program& program);

 private:
  Frame& frame() { return *frames_.back(); }
  const Frame& frame() const { return *frames_.back(); }
  ValueId resolve(size_t depth, tenon_tensor* tensor);
  ValueId resolve_shared(Frame& frame, tenon_tensor* tensor, const Layout& layout, ValueId base);
  ValueId add_leaf(tenon_tensor* tensor, const Layout& layout);
  bool follows_from_leaves(size_t depth, ValueId value, std::vector<ValueId>& leaves) const;
  void begin_write(tenon_tensor* tensor);
  // A write to `storage` makes what shares it in Python alone stale.
  void mark_aliases_stale(const void* storage);
  void check_fresh(const void* storage) const;
  void check_history(const tenon_tensor* tensor, const char* maker);
  void end_grads();
  Operand operand(const tenon_value& value);
  std::string text_of(Step step);
  const InternedText& name_of(const tenon_op* op, const char* name);

  tenon_graph_recording_options options_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<tenon_graph_region>> regions_;
  std::unordered_set<const void*> foreign_;  // storages of values that nothing recorded may use
  AliasSets alias_sets_;
  // Of frames that are gone: their tensors, and those with new memory that their steps made.
  std::vector<Tensor> kept_, made_;
  // Bytes that steps made since unreachable tensors were let go, and how many there may be.
  static constexpr int64_t kMinMade = int64_t{32} << 20;
  int64_t made_bytes_ = 0, made_limit_ = kMinMade;
  // Of every input and leaf that requires a gradient.
  struct GradState {
    Tensor tensor;
    Tensor first;                 // its .grad when it was seen
    bool is_overwritten = false;  // what it was does not matter: it was assigned before it was read
  };
  std::vector<GradState> grads_;
  GradState& grad_state(tenon_tensor* tensor);
  Step pending_;  // the call under way
  Sources sources_;
  PointerMap names_;  // of operators: numbers in known_names_
  std::vector<InternedText> known_names_;
  std::string failure_, refuses_gradients_;
  std::vector<HostRead> host_reads_;
  uint32_t notes_ = 0;
  tenon_device_id device_;
  uint64_t seed_ = 0, random_offset_ = 0;  // of the host device's generator at the begin
};

}  // namespace tenon::graph

// The handle of the service is the recording itself.
struct tenon_graph_recording : tenon::graph::Recording {
  using Recording::Recording;
};
