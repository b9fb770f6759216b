// SPDX-License-Identifier: Apache-2.0
#include "record/move.hpp"

#include <tenon/error.hpp>

#include "ir/verify.hpp"
#include "record/compare_recordings.hpp"
#include "record/unify.hpp"

namespace tenon::graph {
namespace {

Tensor copied(const Tensor& tensor, tenon_device_id device) {
  if (!tensor || tensor->device == device) return tensor;
  ErrorSink err;
  tenon_tensor* made;
  err.check(host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &made, err));
  Tensor moved = Tensor::adopt(made);
  err.check(host->tensor_copy(made, tensor.get(), err));
  return moved;
}

void move_graph(Graph& graph, tenon_device_id device) {
  for (Type& type : graph.values)
    if (type.device != TENON_DEVICE_META) type.device = device;
  for (Step& step : graph.steps) {
    for (Operand& operand : step.operands)
      if (operand.kind == Operand::kAttribute && operand.attribute.tag() == TENON_VALUE_DEVICE)
        operand.attribute = Attribute(boxed_device(device));
    for (Graph& region : step.regions) move_graph(region, device);
  }
}

}  // namespace

ProgramPtr move_program(const Program& program, tenon_device_id device) {
  std::vector<Tensor> leaves;  // once, for all sizes
  for (const Leaf& leaf : program.graph.leaves) {
    if (leaf.grad)
      throw Error(TENON_FAILED_PRECONDITION,
                  "program: it adds to the .grad of a leaf, which stays where it is; freeze() it "
                  "before it is moved to another device");
    leaves.push_back(copied(leaf.tensor, device));
  }
  return changed(program, [&](const Program& each) {
    ProgramPtr moved = copy_program(each);
    move_graph(moved->graph, device);
    for (size_t i = 0; i < moved->graph.leaves.size(); ++i) {
      moved->graph.leaves[i].tensor = leaves[i];
      moved->graph.leaves[i].original = {};
    }
    verify(moved->graph);
    return moved;
  });
}

}  // namespace tenon::graph
