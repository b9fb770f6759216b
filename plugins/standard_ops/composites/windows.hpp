// SPDX-License-Identifier: Apache-2.0
// Windows of images as views, and back: what convolution and pooling are taken apart into.
#pragma once

#include "composites/compose.hpp"
#include "shapes/window.hpp"

namespace tenon::standard_ops {

// [N, C, H, W] with the margins of `window`, filled with `value`; also what its last windows need
// beyond.
Tensor pad_image(Scope& scope, const Tensor& x, const Window& window, ScalarArg value);

// [N, C, OH, OW, KH, KW], a view of a padded image.
Tensor all_windows(Scope& scope, const Tensor& padded, const Window& window);

// The inverse: an image of shape `image` to which every window was added, margins cut off.
Tensor add_windows(Scope& scope, const Tensor& windows, Ints image, const Window& window);

}  // namespace tenon::standard_ops
