// SPDX-License-Identifier: Apache-2.0
// math::f(x) for every scalar function that operator definitions may use (opdefs/README.md), overloaded
// on the element type. For float and double: our own, vectorised by the compiler, at most 4 ulp
// (docs/accuracy.md).
#pragma once

#include "math/arithmetic.hpp"
#include "math/arrays.hpp"
#include "math/complex.hpp"
#include "math/exponential.hpp"
#include "math/gamma.hpp"
#include "math/hyperbolic.hpp"
#include "math/inverse_trigonometric.hpp"
#include "math/power.hpp"
#include "math/special.hpp"
#include "math/trigonometric.hpp"
