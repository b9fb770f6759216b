// SPDX-License-Identifier: Apache-2.0
// Plugins' tables, read once more: the host keeps what it was given to itself.
#include <dlfcn.h>
#include <link.h>

#include <tenon/tensor.hpp>

#include "host/vendor.hpp"

namespace tenon::isolated {

const tenon_plugin* find_table(const char* path, tenon_err* err) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  auto query = reinterpret_cast<tenon_plugin_query_fn>(dlsym(library, "tenon_plugin_query"));
  const tenon_plugin* table = query ? query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, host, err) : nullptr;
  dlclose(library);  // the host holds it
  return table;
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* user) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(user)->push_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

}  // namespace tenon::isolated
