// SPDX-License-Identifier: Apache-2.0
// Extension slots of other services whose values the tensors share that stand in for a result of a recorded call.
#pragma once

#include <tenon/services/gradient_rules.h>

#include "support.hpp"

namespace tenon::autograd {

extern const tenon_gradient_rules_api kGradientRules;

// `to` stands in for `from`. Costs a test where no service has such a slot.
void share_slots(const tenon_tensor* from, tenon_tensor* to);

}  // namespace tenon::autograd
