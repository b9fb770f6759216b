// SPDX-License-Identifier: Apache-2.0
// Sample calls on the device and on the CPU, and what a check does with both.
#pragma once

#include <functional>
#include <string>

#include "operators/compare.hpp"
#include "operators/subjects.hpp"
#include "operators/values.hpp"

namespace tenon::kit {

// One call, compared. False: not to be compared, because it left the device or makes no sense.
bool compare_call(Engine&, const Sample&, int32_t dtype, Layout = Layout::kContiguous,
                  Range = Range::kSmall, const Closeness* = nullptr);

// `body` for samples that run on the CPU, in the subject's first dtype, with their arguments and
// the CPU's answer, until it has failed.
void for_each_sample(
    Engine&, const Subject&,
    const std::function<void(const Sample&, Arguments&, const Answer& on_cpu)>& body,
    SampleKind = SampleKind::kGeneral);

// Memory for an output on the device, with guards on both sides; all bytes alike.
inline constexpr int64_t kGuardBytes = 256;
inline constexpr unsigned char kGuard = 0xb7;
Tensor guarded_room(Engine&, const Tensor& like, unsigned char byte = kGuard);
Tensor inside(Engine&, const Tensor& room, const Tensor& like);

// A call whose outputs start out alike each time, all bytes `byte`: what a kernel leaves out stays
// the same.
Answer call_afresh(Engine&, const Sample&, const Arguments&, const Answer& like,
                   unsigned char byte = kGuard);

std::string bytes_of(Engine&, const Answer&);

}  // namespace tenon::kit
