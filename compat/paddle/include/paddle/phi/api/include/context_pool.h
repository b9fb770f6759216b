// SPDX-License-Identifier: Apache-2.0
// Device contexts, for kernels that ask for one. Custom operators run on the processor here: there
// is a context for it and none for others.
#pragma once

#include <paddle/common/export.h>
#include <paddle/phi/common/place.h>

namespace Eigen {
struct DefaultDevice;
}

namespace phi {

class PADDLE_API DeviceContext {
 public:
  virtual ~DeviceContext();
  const Place& GetPlace() const { return place_; }
  // Work on the processor is done when a kernel returns.
  void Wait() const {}

 protected:
  explicit DeviceContext(const Place& place) : place_(place) {}

 private:
  Place place_;
};

class PADDLE_API CPUContext : public DeviceContext {
 public:
  CPUContext() : DeviceContext(CPUPlace()) {}
  ~CPUContext() override;
  // Eigen's device without state; only code that includes Eigen can do anything with it.
  Eigen::DefaultDevice* eigen_device() const;
};

// Never handed out.
class PADDLE_API CustomContext : public DeviceContext {
 public:
  ~CustomContext() override;
  void* stream() const { return nullptr; }
};

template <AllocationType>
struct ContextOf {
  using type = DeviceContext;
};
template <>
struct ContextOf<AllocationType::CPU> {
  using type = CPUContext;
};
template <>
struct ContextOf<AllocationType::CUSTOM> {
  using type = CustomContext;
};

}  // namespace phi

namespace paddle {
namespace experimental {

class PADDLE_API DeviceContextPool {
 public:
  static DeviceContextPool& Instance();
  // Throws for a place other than the processor.
  const phi::DeviceContext* Get(const Place& place);
  phi::DeviceContext* GetMutable(const Place& place);
  template <phi::AllocationType Type>
  const typename phi::ContextOf<Type>::type* Get(const Place& place) {
    return static_cast<const typename phi::ContextOf<Type>::type*>(Get(place));
  }
};

}  // namespace experimental

using experimental::DeviceContextPool;

}  // namespace paddle
