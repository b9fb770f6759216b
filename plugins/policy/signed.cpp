// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "crypto.hpp"
#include "evidence.hpp"
#include "policies.hpp"

namespace tenon::policy {

namespace fs = std::filesystem;

tenon_status check_signed(const std::string& path, std::string_view bytes, tenon_err* err) {
  std::string folder = from_environment("TENON_PLUGIN_KEYS");
  if (!folder.starts_with('/'))
    return fail(
        err, TENON_FAILED_PRECONDITION,
        "TENON_PLUGIN_POLICY=signed needs TENON_PLUGIN_KEYS, the full path of a folder with "
        "public keys as .pem files; got '" +
            folder + "'");
  std::string signature = read_file(path + ".sig");
  if (signature.empty())
    return fail(
        err, TENON_UNAUTHENTICATED,
        path + " is not signed: there is no " + path + ".sig; ask its vendor for the signature");
  int keys = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".pem") continue;
    if (std::string writer = foreign_writer(entry->path()); !writer.empty())
      return fail(err, TENON_PERMISSION_DENIED,
                  "expected keys that only you or root can change, but " + entry->path().string() +
                      " can be changed by " + writer + "; chmod go-w it, or move it");
    if (verify_ed25519(read_file(entry->path()), signature, bytes)) return TENON_OK;
    ++keys;
  }
  if (keys == 0)
    return fail(
        err, TENON_FAILED_PRECONDITION,
        "expected public keys, as .pem files, in TENON_PLUGIN_KEYS=" + folder + ", got none");
  return fail(err, TENON_UNAUTHENTICATED,
              path + ".sig is by none of the " + std::to_string(keys) + " keys in " + folder +
                  ", or of other bytes; get the vendor's key, or plugin and signature once more");
}

}  // namespace tenon::policy
