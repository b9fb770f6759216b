// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "formats/json_writer.hpp"
#include "harness/text.hpp"
#include "report/report.hpp"

namespace tenon::kit {

std::string to_json(const Options& options, const std::vector<Result>& results,
                    const Level& level) {
  JsonWriter json;
  json.object("", [&] {
    json.string("plugin", options.plugin);
    json.string("kit", kKitVersion);
    json.string("level", level_name(level.reached));
    json.strings("missing", level.missing);
    json.array("checks", [&] {
      for (const Result& result : results)
        json.object("", [&] {
          json.string("id", result.id);
          json.string("outcome", outcome_name(result.outcome));
          json.number("milliseconds", std::llround(result.seconds * 1000));
          if (!result.why.empty()) json.string("why", result.why);
          if (!result.notes.empty()) json.strings("notes", result.notes);
          if (!result.warnings.empty()) json.strings("warnings", result.warnings);
          if (!result.output.empty()) json.string("output", result.output);
          if (!result.failures.empty())
            json.array("failures", [&] {
              for (const Failure& failure : result.failures)
                json.object("", [&] {
                  if (!failure.subject.empty()) json.string("subject", failure.subject);
                  json.string("reason", reason_name(failure.reason));
                  json.string("expected", failure.expected);
                  json.string("got", failure.got);
                  json.string("fix", failure.fix);
                  json.number("count", failure.count);
                });
            });
          if (!result.figures.empty())
            json.array("figures", [&] {
              for (const Figure& figure : result.figures)
                json.object("", [&] {
                  json.string("name", figure.name);
                  json.string("value", text(figure.value));
                  json.string("unit", figure.unit);
                });
            });
        });
    });
  });
  return json.text() + "\n";
}

}  // namespace tenon::kit
