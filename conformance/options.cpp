// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <fnmatch.h>
#include <getopt.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "report/report.hpp"

namespace tenon::kit {
namespace {

constexpr const char kHelp[] =
    R"(tenon-conformance - does a Tenon plugin keep the contract of tenon/abi.h?

  tenon-conformance [options] libtenon_acme.so

  --level L0..L3    fail unless this level is reached
  --only PATTERNS   only these checks: async.*,memory.overlap; what they need is taken for granted
  --json FILE       the report as JSON; - is standard output
  --junit FILE      the report as JUnit XML
  --stamp           write the level reached to <library>.level.json, where `tenon plugins list` finds it
  --timeout SECONDS for each step of a check (60)
  --list            name all checks and what they assert
  --verbose         tell of checks that passed, too
  --version

Every check runs in a process of its own: a plugin may crash, hang or exit, and the kit goes on.
Exit code: 0 conforms, 1 checks failed or the level was not reached, 2 the kit could not run.
)";

std::vector<std::string> split(const char* text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

Parsed refuse(const std::string& problem) {
  std::fprintf(stderr, "tenon-conformance: %s; see --help\n", problem.c_str());
  return Parsed::kError;
}

}  // namespace

Parsed parse_options(int count, char** arguments, Options& options) {
  enum { kLevel = 256, kOnly, kJson, kJunit, kStamp, kTimeout, kList, kVersion };
  const option known[] = {{"level", required_argument, nullptr, kLevel},
                          {"only", required_argument, nullptr, kOnly},
                          {"json", required_argument, nullptr, kJson},
                          {"junit", required_argument, nullptr, kJunit},
                          {"stamp", no_argument, nullptr, kStamp},
                          {"timeout", required_argument, nullptr, kTimeout},
                          {"list", no_argument, nullptr, kList},
                          {"verbose", no_argument, nullptr, 'v'},
                          {"help", no_argument, nullptr, 'h'},
                          {"version", no_argument, nullptr, kVersion},
                          {}};
  for (int found; (found = ::getopt_long(count, arguments, "hv", known, nullptr)) != -1;) {
    switch (found) {
      case kLevel:
        if (std::strlen(optarg) != 2 || optarg[0] != 'L' || optarg[1] < '0' || optarg[1] > '3')
          return refuse(std::string("--level: expected L0, L1, L2 or L3, got ") + optarg);
        options.level = optarg[1] - '0';
        break;
      case kOnly:
        options.only = split(optarg);
        break;
      case kJson:
        options.json = optarg;
        break;
      case kJunit:
        options.junit = optarg;
        break;
      case kStamp:
        options.stamp = true;
        break;
      case kTimeout: {
        char* end = nullptr;
        options.time_limit = std::strtod(optarg, &end);
        if (*end || !(options.time_limit > 0))
          return refuse(std::string("--timeout: expected seconds, got ") + optarg);
        break;
      }
      case kList:
        options.list = true;
        break;
      case 'v':
        options.verbose = true;
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        return Parsed::kDone;
      case kVersion:
        std::printf("tenon-conformance %s\n", kKitVersion);
        return Parsed::kDone;
      default:
        return refuse("an option is wrong");
    }
  }
  if (options.list) return Parsed::kRun;
  if (optind + 1 != count)
    return refuse("expected one plugin, got " + std::to_string(count - optind));
  char real[PATH_MAX];
  if (!::realpath(arguments[optind], real))
    return refuse(std::string(arguments[optind]) + ": " + std::strerror(errno));
  options.plugin = real;
  // A stamp describes the whole plugin.
  if (options.stamp && !options.only.empty())
    return refuse("--stamp needs every check, not --only");
  return Parsed::kRun;
}

bool is_selected(const std::string& id, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return true;
  for (const std::string& pattern : patterns)
    if (::fnmatch(pattern.c_str(), id.c_str(), 0) == 0) return true;
  return false;
}

}  // namespace tenon::kit
