// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>

#include "formats/json_writer.hpp"
#include "report/report.hpp"
#include "report/sha256.hpp"

namespace tenon::kit {

std::string write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return "";
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? "" : path + " cannot be written";
}

std::string write_stamp(const Options& options, const Level& level) {
  std::ifstream file(options.plugin, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) return options.plugin + " cannot be read";
  const std::optional<std::string> digest = sha256(bytes);
  if (!digest)
    return "the stamp needs OpenSSL's libcrypto.so.3, which cannot be loaded; install libssl3";
  std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  JsonWriter json;
  json.object("", [&] {
    json.string("level", level_name(level.reached));
    json.string("kit", kKitVersion);
    json.string("date", date);
    json.string("sha256", *digest);
  });
  return write_file(options.plugin + ".level.json", json.text() + "\n");
}

}  // namespace tenon::kit
