// SPDX-License-Identifier: Apache-2.0
// plugin_probe <library> <device>: loads a plugin and moves a tensor to its device and back.
#include <tenon/abi.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "usage: plugin_probe <library> <device>\n"), 2;
  const tenon_host* host = tenon_host_get(TENON_ABI_EPOCH);
  tenon_err* err = host->err_create();
  auto check = [&](const char* what, tenon_status status) {
    if (status != TENON_OK) std::fprintf(stderr, "%s: %s\n", what, host->err_text(err));
    return status == TENON_OK;
  };
  tenon_device_id device;
  tenon_tensor* tensor = nullptr;
  int64_t shape = 1024;
  bool is_good =
      check("load", host->plugin_load(arguments[1], err)) &&
      check("device", host->device_find(arguments[2], &device, err)) &&
      check("tensor", host->tensor_create(device, TENON_DTYPE_F32, 1, &shape, &tensor, err));
  host->tensor_release(tensor);
  if (is_good) std::printf("%s provides %s\n", arguments[1], arguments[2]);
  host->err_destroy(err);
  return is_good ? 0 : 1;
}
