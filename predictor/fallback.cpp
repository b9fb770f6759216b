// SPDX-License-Identifier: Apache-2.0
#include "fallback.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstdlib>

#include "formats/json_fields.hpp"
#include "graph_service.hpp"

namespace tenon::predictor {

HostCalls host_calls(tenon_device_id device) {
  std::string json;
  host->fallback_report(0, append_to_string, &json);
  const std::string kind = host->device_kind_name(TENON_DEVICE_KIND(device));
  HostCalls calls;
  // A list of objects without others inside.
  for (size_t begin = json.find('{'); begin != json.npos; begin = json.find('{', begin + 1)) {
    const size_t end = std::min(json.find('}', begin), json.size() - 1);
    const std::string row = json.substr(begin, end + 1 - begin);
    JsonFields fields;
    const size_t count = row.find("\"host\":");
    if (!parse_json_fields(row, fields) || count == row.npos)
      throw Error(TENON_INTERNAL, "fallback: the host's report is not what was expected: " + row);
    if (fields.strings["device"] == kind)
      calls[fields.strings["op"]] = std::strtoull(row.c_str() + count + 7, nullptr, 10);
  }
  return calls;
}

void check_no_more(const HostCalls& before, const HostCalls& after, const Model& model) {
  std::string list;
  for (const auto& [op, count] : after) {
    const auto known = before.find(op);
    const uint64_t more = count - (known == before.end() ? 0 : known->second);
    if (more > 0) list += "\n  " + op + ": " + std::to_string(more) + " calls";
  }
  if (!list.empty())
    throw Error(TENON_PERMISSION_DENIED,
                model.config().path() + ": in a run on " + model.setting("device") +
                    " the host computed, with copies:" + list +
                    "\n  `fallback` is deny; bring kernels for them, run the program on the host, "
                    "or set `fallback` to allow");
}

}  // namespace tenon::predictor
