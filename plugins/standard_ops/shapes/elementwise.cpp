// SPDX-License-Identifier: Apache-2.0
// Element-by-element operators whose numbers have a domain.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

TENON_INFER(polygamma) {
  if (int_of(args[0]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "polygamma",
                        "expected an order n of at least 0, got %lld", ll(int_of(args[0])));
  set_like(outs[0], tensor_of(args[1]));
  outs[0].dtype = static_cast<uint8_t>(shapes::float_dtype(outs[0].dtype));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
