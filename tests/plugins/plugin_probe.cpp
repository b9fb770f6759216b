// SPDX-License-Identifier: Apache-2.0
// plugin_probe <library> <name>: loads a plugin and uses what it provides. A name with "::" is an
// operator that must then be known; any other a device on which a tensor is made.
#include <tenon/abi.h>

#include <cstdio>
#include <string>

namespace {

tenon_status use_device(const tenon_host* host, const char* name, tenon_err* err) {
  tenon_device_id device;
  if (tenon_status status = host->device_find(name, &device, err); status != TENON_OK)
    return status;
  tenon_tensor* tensor = nullptr;
  int64_t shape = 1024;
  tenon_status status = host->tensor_create(device, TENON_DTYPE_F32, 1, &shape, &tensor, err);
  host->tensor_release(tensor);
  return status;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "usage: plugin_probe <library> <name>\n"), 2;
  std::string name = arguments[2];
  const tenon_host* host = tenon_host_get(TENON_ABI_EPOCH);
  tenon_err* err = host->err_create();
  tenon_status status = host->plugin_load(arguments[1], err);
  if (status == TENON_OK && name.find("::") == name.npos)
    status = use_device(host, name.c_str(), err);
  else if (status == TENON_OK && !host->op_find(name.c_str()))
    status = TENON_NOT_FOUND;
  if (status == TENON_OK)
    std::printf("%s provides %s\n", arguments[1], name.c_str());
  else
    std::fprintf(stderr, "%s: status %d: %s\n", name.c_str(), status, host->err_text(err));
  host->err_destroy(err);
  return status != TENON_OK;
}
