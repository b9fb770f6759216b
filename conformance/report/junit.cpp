// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"
#include "harness/text.hpp"
#include "report/report.hpp"

namespace tenon::kit {
namespace {

std::string escape(std::string_view raw) {
  std::string safe;
  for (char c : raw) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      safe += '?';  // XML 1.0 has no way to say it
    else
      safe += c;
  }
  return safe;
}

}  // namespace

std::string to_junit(const Options& options, const std::vector<Result>& results) {
  size_t failed = 0, skipped = 0;
  std::string cases;
  for (const Result& result : results) {
    cases += text("  <testcase classname=\"", family_of(result.id), "\" name=\"", result.id,
                  "\" time=\"", result.seconds, "\">\n");
    if (result.outcome == Outcome::kFailed) {
      ++failed;
      for (const Failure& failure : result.failures)
        cases += text("    <failure type=\"", reason_name(failure.reason), "\" message=\"",
                      escape(failure.subject), failure.subject.empty() ? "" : ": ", "expected ",
                      escape(failure.expected), ", got ", escape(failure.got), "\">",
                      escape(failure.fix), "</failure>\n");
    } else if (result.outcome != Outcome::kPassed) {
      ++skipped;
      cases += text("    <skipped message=\"", escape(result.why), "\"/>\n");
    }
    cases += "  </testcase>\n";
  }
  return text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"",
              escape(options.plugin), "\" tests=\"", results.size(), "\" failures=\"", failed,
              "\" skipped=\"", skipped, "\">\n", cases, "</testsuite>\n");
}

}  // namespace tenon::kit
