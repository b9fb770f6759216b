// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sharded.hpp"

namespace tenon::sharding {

// TENON_LAYER_DECLINED: it is another call.
tenon_status call_in_same_places(const tenon_op* op, const tenon_op_def& def,
                                 const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                 uint32_t nouts, tenon_err* err);

}  // namespace tenon::sharding
