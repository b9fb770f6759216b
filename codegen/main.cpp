// SPDX-License-Identifier: Apache-2.0
// tenon-codegen: operator files to C++, C and Python. See opdefs/README.md for the grammar.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "binding/binding.hpp"
#include "bridge/bridge.hpp"
#include "check/check.hpp"
#include "emit/emit.hpp"
#include "load/load.hpp"
#include "load/names.hpp"
#include "onnx/onnx.hpp"
#include "rewrite/rewrite.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct Options {
  std::vector<std::string> files, imports, emit;
  std::string out = ".", signatures;
  EmitOptions emit_options;
  std::string onnx_schemas, names;
  bool bindings = false, rewrites = false, bridge = false, check_only = false, list = false,
       help = false;
};

void print_help() {
  std::cout
      << "tenon-codegen: generate code from operator files\n\n"
         "  tenon-codegen --emit NAME[,NAME...] --out FOLDER FILE.yaml...\n"
         "  tenon-codegen --bindings --out FOLDER --import FILE.yaml... BINDINGS.yaml...\n"
         "  tenon-codegen --rewrites --out FOLDER REWRITES.yaml...\n"
         "  tenon-codegen --bridge --signatures FILE --out FOLDER --import FILE.yaml... "
         "CALLS.yaml...\n\n"
         "  --emit NAMES         what to write, below\n"
         "  --out FOLDER         where; files that would not change are not touched\n"
         "  --import FILE.yaml   operators that expressions may use, not emitted; repeatable\n"
         "  --namespace NAME     C++ namespace of operator tables; default: <ns>::operators\n"
         "  --folder NAME        subfolder of operator tables; default: operators\n"
         "  --bindings           the files bind operators of a library: write bindings.hpp and "
         ".cpp\n"
         "  --rewrites           the files hold rewrites of programs: write rewrites.hpp\n"
         "  --bridge             the files tell another library's calls: write "
         "python/_<library>_calls.py\n"
         "  --signatures FILE    the calls that the library has\n"
         "  --onnx SCHEMAS.txt   the files say what imports operators of ONNX: write "
         "onnx_lines.hpp\n"
         "  --names FILE.yaml    the file of names: of what is no operator, and of keywords\n"
         "  --list               print the files that would be written, one per line\n"
         "  --check              only check the operator files\n\nwhat may be emitted:\n";
  for (const EmitterRow& row : emitters())
    std::cout << "  " << row.name << std::string(21 - std::string(row.name).size(), ' ')
              << row.summary << "\n";
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

Options parse_options(int argc, char** argv) {
  Options options;
  auto value = [&](int& i) -> std::string {
    if (i + 1 >= argc) throw std::runtime_error(cat(argv[i], ": expected a value after it"));
    return argv[++i];
  };
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--emit") {
      for (std::string& name : split_list(value(i))) options.emit.push_back(std::move(name));
    } else if (word == "--out") {
      options.out = value(i);
    } else if (word == "--import") {
      options.imports.push_back(value(i));
    } else if (word == "--namespace") {
      options.emit_options.cpp_namespace = value(i);
    } else if (word == "--folder") {
      options.emit_options.folder = value(i);
    } else if (word == "--bindings") {
      options.bindings = true;
    } else if (word == "--rewrites") {
      options.rewrites = true;
    } else if (word == "--bridge") {
      options.bridge = true;
    } else if (word == "--signatures") {
      options.signatures = value(i);
    } else if (word == "--names") {
      options.names = value(i);
    } else if (word == "--onnx") {
      options.onnx_schemas = value(i);
    } else if (word == "--check") {
      options.check_only = true;
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word.rfind("--", 0) == 0) {
      throw std::runtime_error(
          cat("unknown option ", word,
              did_you_mean(word, {"--emit", "--out", "--import", "--namespace", "--folder",
                                  "--bindings", "--bridge", "--signatures", "--onnx", "--names",
                                  "--check", "--list", "--help"})));
    } else {
      options.files.push_back(word);
    }
  }
  return options;
}

std::vector<const EmitterRow*> chosen_emitters(const Options& options) {
  std::vector<const EmitterRow*> chosen;
  std::vector<std::string> known;
  for (const EmitterRow& row : emitters()) known.push_back(row.name);
  for (const std::string& name : options.emit) {
    auto row = std::find_if(emitters().begin(), emitters().end(),
                            [&](const EmitterRow& entry) { return name == entry.name; });
    if (row == emitters().end())
      throw std::runtime_error(cat("--emit: unknown name `", name, "`", did_you_mean(name, known),
                                   "; known: ", join(known, " ")));
    chosen.push_back(&*row);
  }
  return chosen;
}

// An unchanged file keeps its time, so that what depends on it is not built again.
void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::ifstream old(path, std::ios::binary);
  if (old) {
    std::ostringstream content;
    content << old.rdbuf();
    if (content.str() == text) return;
  }
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error(cat("cannot write ", path.string()));
}

int run(const Options& options) {
  if (options.help) return print_help(), 0;
  if (options.files.empty()) throw std::runtime_error("expected operator files; see --help");
  Package package;
  std::vector<std::string> errors;
  const bool is_onnx = !options.onnx_schemas.empty();
  if (!options.bindings && !options.rewrites && !options.bridge && !is_onnx)
    for (const std::string& file : options.files) load_file(file, true, package, errors);
  for (const std::string& file : options.imports) load_file(file, false, package, errors);
  if (!options.names.empty()) load_names(options.names, package, errors);
  if (errors.empty()) check_package(package, errors);
  BindingSet set;
  if (options.bindings && errors.empty())
    for (const std::string& file : options.files) load_bindings(file, package, set, errors);
  std::vector<Rewrite> rewrites;
  if (options.rewrites)
    for (const std::string& file : options.files) load_rewrites(file, rewrites, errors);
  Bridge bridge;
  ForeignSignatures signatures;
  if (options.bridge && errors.empty()) {
    signatures = load_signatures(options.signatures);
    for (const std::string& file : options.files)
      load_bridge(file, package, signatures, bridge, errors);
  }
  OnnxTable table;
  if (is_onnx) {
    load_onnx_schemas(options.onnx_schemas, table, errors);
    for (const std::string& file : options.files) load_onnx(file, table, errors);
    if (errors.empty()) check_onnx(table, package, errors);
  }
  for (const std::string& error : errors) std::cerr << error << "\n";
  if (!errors.empty()) return 1;
  if (options.check_only) return 0;
  const auto write = [&](const OutputFile& file) {
    if (options.list)
      std::cout << file.path << "\n";
    else
      write_if_changed(std::filesystem::path(options.out) / file.path, file.text);
  };
  if (options.bindings)
    for (const OutputFile& file : emit_bindings(set)) write(file);
  if (options.rewrites) write(emit_rewrites(rewrites));
  if (is_onnx) write(emit_onnx(table));
  if (options.bridge) write(emit_bridge(bridge, signatures));

  EmitOptions emit_options = options.emit_options;
  if (emit_options.folder.empty()) emit_options.folder = "operators";
  if (emit_options.cpp_namespace.empty())
    emit_options.cpp_namespace = cat(package.name_space, "::", emit_options.folder);
  for (const EmitterRow* row : chosen_emitters(options))
    for (const OutputFile& file : row->emit(package, emit_options)) write(file);
  return 0;
}

}  // namespace
}  // namespace tenon::codegen

int main(int argc, char** argv) {
  try {
    return tenon::codegen::run(tenon::codegen::parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "tenon-codegen: " << error.what() << "\n";
    return 2;
  }
}
