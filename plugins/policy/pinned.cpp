// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <sstream>

#include "crypto.hpp"
#include "evidence.hpp"
#include "policies.hpp"

namespace tenon::policy {
namespace {

constexpr size_t kDigestLength = 64;

// Beside libtenon.so: every environment has its own, and `tenon plugins lock` can find it.
std::string lock_path() {
  std::string named = from_environment("TENON_PLUGIN_LOCK");
  return named.empty() ? own_folder() + "/plugins.lock" : named;
}

}  // namespace

tenon_status check_pinned(const std::string& path, std::string_view bytes, tenon_err* err) {
  std::string lock = lock_path();
  std::error_code error;
  if (!lock.starts_with('/') || !std::filesystem::exists(lock, error))
    return fail(
        err, TENON_DATA_LOSS,
        path + " is not pinned: there is no lock file " + lock +
            "; write it with `tenon plugins lock`, or set TENON_PLUGIN_LOCK to its full path");
  if (std::string writer = foreign_writer(lock); !writer.empty())
    return fail(err, TENON_PERMISSION_DENIED,
                "expected a lock that only you or root can change, but " + lock +
                    " can be changed by " + writer + "; chmod go-w it, or move it");

  std::string digest = sha256(bytes), former;
  std::string name = '/' + std::filesystem::path(path).filename().string();
  std::istringstream lines(read_file(lock));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('\\')) line.erase(0, 1);  // sha256sum's mark of an escaped name
    std::string listed = line.substr(0, kDigestLength);
    // By content, wherever the file lies: environments move.
    if (listed == digest) return TENON_OK;
    if (line.ends_with(name)) former = listed;
  }
  if (former.empty())
    return fail(err, TENON_DATA_LOSS,
                path + " is not pinned: " + lock + " does not list its sha256 " + digest +
                    "; if you trust it, run `tenon plugins lock " + path + "`");
  return fail(err, TENON_DATA_LOSS,
              path + " is not what was pinned: expected sha256 " + former + ", got " + digest +
                  "; if you trust the new one, run `tenon plugins lock " + path + "`");
}

}  // namespace tenon::policy
