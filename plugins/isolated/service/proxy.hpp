// SPDX-License-Identifier: Apache-2.0
// What stands in this process for a plugin in another: a table made at run time, whose functions
// send requests.
#pragma once

#include <tenon/services/isolated.h>

#include <deque>

#include "service/connection.hpp"
#include "service/description.hpp"

namespace tenon::isolated {
struct Proxy;
}

// What the host passes back to us for an open device.
struct tenon_device_s {
  tenon::isolated::Proxy* proxy;
  uint32_t index;
};

namespace tenon::isolated {

// Functions of the contract that are given nothing to tell one plugin from another by exist once
// for each that may be loaded at one time; likewise can_run, for each kernel that has one.
inline constexpr uint32_t kMaxProxies = 16;
inline constexpr uint32_t kMaxDecliners = 2048;
inline constexpr uint32_t kUnknownKind = ~uint32_t{0};

struct Proxy {
  Proxy(std::shared_ptr<Process> process, uint64_t deadline_ns)
      : connection(std::move(process), deadline_ns) {}

  Connection connection;
  Description description;
  uint32_t slot = kMaxProxies;
  std::atomic<uint32_t> kind{kUnknownKind};  // the device's number here
  std::deque<tenon_device_s> devices;        // by index; addresses stay
  std::vector<tenon_kernel_def> kernels;
  std::vector<uint32_t> decliners;  // numbers of can_run functions in use
  std::vector<uint32_t> operators;  // id here -> id there
  tenon_device_api device = {};
  tenon_plugin plugin = {};
  std::mutex random;  // one call at a time takes random numbers

  std::mutex lifetime;  // this and below
  uint32_t open_devices = 0;
  bool is_stopping = false;
  bool has_ended = false;
};

// slots.cpp: fill the tables from the description. err says what there are too many of.
tenon_status build_tables(Proxy& proxy, tenon_err* err);
// For others to use; the host calls none of the proxy's functions any more.
void give_slots_back(Proxy& proxy);

// kernels.cpp
tenon_status build_kernels(Proxy& proxy, tenon_err* err);
void give_decliners_back(Proxy& proxy);

// device.cpp
void fill_device_table(Proxy& proxy);

// lifetime.cpp: the host stops a plugin, then closes its devices. With the last of these calls the
// process is not needed any more.
tenon_status stop_proxy(Proxy& proxy, tenon_err* err);
void close_one_device(Proxy& proxy);
tenon_status load_isolated(const tenon_isolated_request* request, tenon_err* err);

}  // namespace tenon::isolated
