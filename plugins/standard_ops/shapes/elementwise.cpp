// SPDX-License-Identifier: Apache-2.0
// Element-by-element operators whose numbers have a domain.
#include <tenon/bessel_series.hpp>

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

TENON_INFER(incomplete_gamma) {
  const tenon_tensor &a = tensor_of(args[0]), &x = tensor_of(args[1]);
  if (!std::ranges::equal(shape_of(a), shape_of(x)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "incomplete_gamma",
                        "expected tensors of one shape, got %s and %s", shape_text(a).c_str(),
                        shape_text(x).c_str());
  set_like(outs[0], x);
  outs[0].dtype = static_cast<uint8_t>(shapes::float_dtype(outs[0].dtype));
  return TENON_OK;
}

TENON_INFER(bessel_ie) {
  if (int_of(args[0]) < 0 || int_of(args[0]) > BesselSeries::kMaxOrder)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "bessel_ie",
                        "expected an order n from 0 to %lld, got %lld; derivatives of i0 and i1 "
                        "are computed up to order %lld",
                        ll(BesselSeries::kMaxOrder), ll(int_of(args[0])),
                        ll(BesselSeries::kMaxOrder - 1));
  set_like(outs[0], tensor_of(args[1]));
  outs[0].dtype = static_cast<uint8_t>(shapes::float_dtype(outs[0].dtype));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
