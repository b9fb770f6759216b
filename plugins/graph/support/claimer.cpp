// SPDX-License-Identifier: Apache-2.0
#include "support/claimer.hpp"

#include <tenon/error.hpp>

#include <utility>

#include "support/host.hpp"

namespace tenon::graph {

Claimer::Claimer(std::string name, const std::string& options, int32_t numerics)
    : name_(std::move(name)) {
  const std::string service = name_ + TENON_GRAPH_CLAIMER_SUFFIX;
  service_ = static_cast<const tenon_graph_claimer_api*>(
      host->service_find(service.c_str(), TENON_GRAPH_CLAIMER_VERSION));
  if (!service_)
    throw Error(TENON_NOT_FOUND, "program: expected the name of a claimer of sub-graphs, got '" +
                                     name_ + "', of which no plugin offers the service `" +
                                     service + "`; name the plugin's folder in TENON_PLUGIN_PATH");
  if (!(service_->flags & TENON_EXECUTABLE_EXACT) && numerics != TENON_GRAPH_FAST)
    throw Error(TENON_FAILED_PRECONDITION,
                "program: expected numerics=\"fast\" for the claimer '" + name_ +
                    "', whose results have other bits than kernels give, got a program whose "
                    "results are to be nearer; optimize it with numerics=\"fast\"");
  const ErrorSink err;
  err.check(service_->open(options.c_str(), &handle_, err));
}

// A child of a fork destroys no executables of its parent, and so does not close what made them.
Claimer::~Claimer() {
  if (::getpid() == process_) service_->close(handle_);
}

}  // namespace tenon::graph
