// SPDX-License-Identifier: Apache-2.0
// paddle::Place: the device that a tensor is on.
#pragma once

#include <paddle/common/export.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace phi {

enum class AllocationType : int8_t {
  UNDEFINED = 0,
  CPU = 1,
  GPU = 2,
  GPUPINNED = 3,
  XPU = 4,
  IPU = 7,
  CUSTOM = 9,
};

class Place {
 public:
  Place() = default;
  explicit Place(AllocationType type) : type_(type) {}
  Place(AllocationType type, int8_t id) : type_(type), device_(id) {}
  Place(AllocationType type, int8_t id, std::string device_type)
      : type_(type), device_(id), device_type_(std::move(device_type)) {}

  AllocationType GetType() const { return type_; }
  int8_t GetDeviceId() const { return device_; }
  // "acme": the device kind of a custom place.
  const std::string& GetDeviceType() const { return device_type_; }
  // "Place(cpu)", "Place(acme:0)".
  PADDLE_API std::string DebugString() const;

  bool operator==(const Place& other) const {
    return type_ == other.type_ && device_ == other.device_ && device_type_ == other.device_type_;
  }
  bool operator!=(const Place& other) const { return !(*this == other); }
  bool operator<(const Place& other) const {
    if (type_ != other.type_) return type_ < other.type_;
    return device_ != other.device_ ? device_ < other.device_ : device_type_ < other.device_type_;
  }

 private:
  AllocationType type_ = AllocationType::UNDEFINED;
  int8_t device_ = 0;
  std::string device_type_;
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.DebugString();
}

class CPUPlace : public Place {
 public:
  CPUPlace() : Place(AllocationType::CPU) {}
};
class GPUPlace : public Place {
 public:
  GPUPlace() : GPUPlace(0) {}
  explicit GPUPlace(int device) : Place(AllocationType::GPU, static_cast<int8_t>(device)) {}
};
class GPUPinnedPlace : public Place {
 public:
  GPUPinnedPlace() : Place(AllocationType::GPUPINNED) {}
};
class XPUPlace : public Place {
 public:
  XPUPlace() : XPUPlace(0) {}
  explicit XPUPlace(int device) : Place(AllocationType::XPU, static_cast<int8_t>(device)) {}
};
class CustomPlace : public Place {
 public:
  explicit CustomPlace(const std::string& device_type, int device = 0)
      : Place(AllocationType::CUSTOM, static_cast<int8_t>(device), device_type) {}
};

inline bool is_cpu_place(const Place& place) { return place.GetType() == AllocationType::CPU; }
inline bool is_gpu_place(const Place& place) { return place.GetType() == AllocationType::GPU; }
inline bool is_xpu_place(const Place& place) { return place.GetType() == AllocationType::XPU; }
inline bool is_custom_place(const Place& place) {
  return place.GetType() == AllocationType::CUSTOM;
}

}  // namespace phi

namespace paddle {

using Place = phi::Place;
using CPUPlace = phi::CPUPlace;
using GPUPlace = phi::GPUPlace;
using GPUPinnedPlace = phi::GPUPinnedPlace;
using XPUPlace = phi::XPUPlace;
using CustomPlace = phi::CustomPlace;
using AllocationType = phi::AllocationType;

inline GPUPlace DefaultGPUPlace() { return GPUPlace(0); }

// The older way to name a device. It converts to a Place.
enum class PlaceType {
  kUNK = 0,
  kCPU = 1,
  kGPU = 2,
};
PADDLE_API Place ConvertToPlace(PlaceType type);

// Whatever the number of the device.
inline bool operator==(const Place& place, PlaceType type) {
  return place.GetType() == ConvertToPlace(type).GetType();
}
inline bool operator==(PlaceType type, const Place& place) { return place == type; }
inline bool operator!=(const Place& place, PlaceType type) { return !(place == type); }
inline bool operator!=(PlaceType type, const Place& place) { return !(place == type); }

namespace platform {
using Place = phi::Place;
using CPUPlace = phi::CPUPlace;
using CUDAPlace = phi::GPUPlace;
using CustomPlace = phi::CustomPlace;
}  // namespace platform

namespace experimental {
using Place = phi::Place;
}

}  // namespace paddle
