// SPDX-License-Identifier: Apache-2.0
// What this process does when it is asked.
#pragma once

#include <vector>

#include "host/vendor.hpp"
#include "wire/lane.hpp"

namespace tenon::isolated {

// Served by one thread, with what it keeps from one request to the next.
class Server {
 public:
  Server(Vendor& vendor, Lane& lane, Patience patience);
  ~Server();

  // For ever, or until a request starts the others / ends the process.
  void serve(void (*on_loaded)());

 private:
  tenon_status run(Command command, Reader& in, Writer& out);
  tenon_status load(Reader& in, Writer& out);
  tenon_status alloc(Reader& in, Writer& out);
  tenon_status free(Reader& in);
  tenon_status copy_on(Reader& in);
  tenon_status copy_staged(Reader& in, int32_t direction);
  tenon_status fill(Reader& in);
  tenon_status sync(Reader& in);
  tenon_status can_run(Reader& in, Writer& out);
  tenon_status call(Reader& in, Writer& out);
  tenon_status collect(Reader& in);
  void drop_results();

  Vendor& vendor_;
  Lane& lane_;
  const Patience patience_;
  tenon_err* err_;
  std::vector<unsigned char> private_;  // where the plugin copies to, before the other side sees it
  std::vector<tenon_tensor*> results_;  // of a data-dependent operator, until they are collected
};

}  // namespace tenon::isolated
