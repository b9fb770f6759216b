// SPDX-License-Identifier: Apache-2.0
// Out-of-line parts of the headers: errors and device contexts.
#include <paddle/phi/api/ext/dispatch.h>
#include <paddle/phi/api/include/context_pool.h>

#include "core/host.hpp"

namespace paddle {

namespace detail {

void throw_dispatch(const char* file, int line, const char* name, DataType dtype,
                    const char* expected) {
  throw std::runtime_error(std::string(name) + ": expected " + expected + ", got " +
                           phi::DataTypeToString(dtype) + " [" + file + ":" + std::to_string(line) +
                           "]");
}

}  // namespace detail

namespace experimental {

DeviceContextPool& DeviceContextPool::Instance() {
  static DeviceContextPool* pool = new DeviceContextPool;  // outlives static destructors
  return *pool;
}

const phi::DeviceContext* DeviceContextPool::Get(const Place& place) { return GetMutable(place); }

phi::DeviceContext* DeviceContextPool::GetMutable(const Place& place) {
  static phi::CPUContext* processor = new phi::CPUContext;
  if (phi::is_cpu_place(place)) return processor;
  throw tenon::paddle::Error(
      TENON_UNSUPPORTED, "DeviceContextPool::Get: expected Place(cpu), got " + place.DebugString() +
                             "; custom operators run on the processor here");
}

}  // namespace experimental
}  // namespace paddle

namespace phi {

DeviceContext::~DeviceContext() = default;
CPUContext::~CPUContext() = default;
CustomContext::~CustomContext() = default;

Eigen::DefaultDevice* CPUContext::eigen_device() const {
  static char stateless[64];
  return reinterpret_cast<Eigen::DefaultDevice*>(stateless);
}

}  // namespace phi
