// SPDX-License-Identifier: Apache-2.0
#include "core/library.hpp"

#include "core/host.hpp"

namespace tenon::paddle {

tenon_library open_library(const std::string& path, uint32_t flags) {
  ErrorSink err;
  err.check(host->plugin_load_default(err));  // after which the host's services are there
  const auto* libraries = static_cast<const tenon_libraries_api*>(
      host->service_find(TENON_LIBRARIES_SERVICE, TENON_LIBRARIES_VERSION));
  if (!libraries)
    throw Error(TENON_NOT_FOUND,
                "this libtenon does not offer the service libraries; install the "
                "package of one version");
  tenon_library library = {};
  const tenon_status status = libraries->open(path.c_str(), flags, &library, err);
  if (status == TENON_OK) return library;
  std::string text = host->err_text(err);
  constexpr std::string_view kReason = " [OPEN_FAILED]";
  if (text.ends_with(kReason)) text.resize(text.size() - kReason.size());
  throw Error(status, text);
}

}  // namespace tenon::paddle
