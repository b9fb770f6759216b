// SPDX-License-Identifier: Apache-2.0
// Functions of aclnn that write into their operand.
#include "tensor.hpp"

using namespace simulated::aclnn;

ACLNN_EXPORT int aclnnInplaceDivsGetWorkspaceSize(aclTensor* self, const aclScalar* other,
                                                  uint64_t* bytes, aclOpExecutor** executor) {
  constexpr const char* kName = "aclnnInplaceDivs";
  if (!self || !other) return refuse(kName, kNullPointer, "an operand is nullptr");
  if (!is_alive(other)) return refuse(kName, kInvalid, "the scalar was destroyed");
  if (is_alive(self) && !is_float(self->dtype))
    return refuse(kName, kInvalid, "expected a floating dtype");
  return plan(
      kName, {self},
      [divisor = other->number](std::vector<View>& views) {
        View& view = views[0];
        for (int64_t i = 0; i < view.count(); ++i) {
          const int64_t at = view.offset(i, view.of.shape);
          view.store(at, view.number(at) / divisor);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnInplaceDivs)
