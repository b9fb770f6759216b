// SPDX-License-Identifier: Apache-2.0
// Tangents of tensors: where they are kept, at which level, and whether they are still true.
#pragma once

#include <tenon/services/gradient_rules.h>
#include <tenon/tensor.hpp>

#include <memory>
#include <vector>

namespace tenon::forward {

// Given by the host when the plugin starts, and with the first level; constant from then on.
struct Place {
  int32_t slot = -1;   // extension slot of a tensor's Tangents
  int32_t layer = -1;  // registered with the first level
};
inline Place place;
inline const tenon_gradient_rules_api* rules = nullptr;
inline const tenon_autograd_api* autograd = nullptr;

struct Tangents;  // of one tensor, at each level

// The tangents that a level has put into slots. A node of autograd keeps a stand-in of its result, with a tangent, whose
// history may keep the node: such circles end with the level, after which no code asks for its tangents.
class LevelTangents {
 public:
  void add(const std::shared_ptr<Tangents>& owner);
  // Take those of the level, which is this one, out of all slots that still are.
  void drop(uint64_t level);

 private:
  std::vector<std::weak_ptr<Tangents>> known_;
};

// What the thread differentiates by. A call is looked at by one level after another, from the innermost on.
struct ThreadState {
  std::vector<uint64_t> levels;
  std::vector<LevelTangents> known;  // of each
  size_t active = 0;                 // calls see the first so many of them
  std::vector<int32_t> outside;      // whether the layer was on before each
};
ThreadState& thread_state();

// What the calls of a level's own rules see: the levels around it.
class Within {
 public:
  explicit Within(size_t active) : state_(thread_state()), before_(state_.active) {
    state_.active = active;
  }
  ~Within() { state_.active = before_; }
  Within(const Within&) = delete;

 private:
  ThreadState& state_;
  size_t before_;
};

// Failures are thrown (tenon/error.hpp). An empty tensor: none, and `x` is a constant of the level.
Tensor tangent_of(tenon_tensor* x, uint64_t level);
// A view that is made a constant stays one when its base has a tangent.
void set_tangent(tenon_tensor* x, uint64_t level, Tensor tangent);
// Reading the tangent fails: the tensor depends on what the level differentiates by, and nothing
// tells how.
void set_unknown(tenon_tensor* x, uint64_t level);
// May tangent_of() find one, or fail?
bool has_tangent(const tenon_tensor* x, uint64_t level);
// Does the level know of it: has it a tangent, or was it, a view, made a constant? Views of such views are constants, too.
bool is_known(const tenon_tensor* x, uint64_t level);
// `to` shares the memory of `from`, and has its tangents afterwards, those that a view has from its base among them.
void copy_tangents(tenon_tensor* from, tenon_tensor* to);
// Functions of the extension slot.
void drop_tangents(void* value);
void* copy_of_tangents(const void* value);

}  // namespace tenon::forward
