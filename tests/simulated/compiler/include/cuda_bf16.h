// SPDX-License-Identifier: Apache-2.0
// Empty: language.hpp, which comes before every program, declares what this header would.
