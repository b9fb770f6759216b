// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

namespace tenon::kernel_c {

SourceText::SourceText(const Device& device, std::string name) : name_(std::move(name)) {
  text_.reserve(16384);
  if (device.host_like()) text_ += "#define HOST_LIKE\n";
  define("KERNEL", kernel_name(name_));
  text_ += piece::common;
}

SourceText& SourceText::define(const char* name, std::string_view value) {
  text_ += "#define ";
  text_ += name;
  text_ += ' ';
  text_ += value;
  text_ += '\n';
  return *this;
}

SourceText& SourceText::element(int dtype) {
  const DtypeText& type = dtype_text(dtype);
  text_ += "typedef ";
  text_ += type.compute;
  text_ += " T;\n";
  text_ += type.traits;
  text_ += piece::functions;
  return *this;
}

SourceText& SourceText::memory(const char* prefix, int dtype) {
  const DtypeText& type = dtype_text(dtype);
  const std::string start = prefix;
  define((start + "STORAGE").c_str(), type.storage);
  define((start + "COMPUTE").c_str(), type.compute);
  define((start + "LOAD(v)").c_str(), std::string(type.load) + "(v)");
  define((start + "CONVERT(v)").c_str(),
         dtype == TENON_DTYPE_BOOL ? "((v) != 0)" : "((" + std::string(type.compute) + ")(v))");
  return define((start + "STORE(v)").c_str(), "(" + std::string(type.store) + "(v))");
}

SourceText& SourceText::moved(const char* prefix, int dtype) {
  const std::string start = prefix;
  define((start + "STORAGE").c_str(), bits_type(dtype));
  define((start + "COMPUTE").c_str(), bits_type(dtype));
  define((start + "LOAD(v)").c_str(), "(v)");
  define((start + "CONVERT(v)").c_str(), "(v)");
  return define((start + "STORE(v)").c_str(), "(v)");
}

}  // namespace tenon::kernel_c
