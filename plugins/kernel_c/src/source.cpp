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
  complex_type(dtype);
  if (is_complex(dtype))
    text_ += std::string("typedef ") + dtype_text(real_dtype(dtype)).compute + " R;\n";
  text_ += "typedef ";
  text_ += type.compute;
  text_ += " T;\n";
  text_ += type.traits;
  text_ += piece::functions;
  if (is_complex(dtype)) add(piece::complex).add(piece::complex_functions);
  return *this;
}

void SourceText::complex_type(int dtype) {
  if (!is_complex(dtype) || complex_types_ >> dtype & 1) return;
  complex_types_ |= dtype_bit(dtype);
  const std::string name = dtype_text(dtype).compute, part = dtype_text(real_dtype(dtype)).compute;
  text_ += "typedef struct { " + part + " re, im; } " + name + ";\nTK_FUNCTION " + name +
           " tk_make_" + suffix(dtype) + "(" + part + " re, " + part + " im) {\n  " + name +
           " z;\n  z.re = re;\n  z.im = im;\n  return z;\n}\n";
}

SourceText& SourceText::memory(const char* prefix, int dtype) {
  const DtypeText& type = dtype_text(dtype);
  const std::string start = prefix;
  complex_type(dtype);
  define((start + "STORAGE").c_str(), type.storage);
  define((start + "COMPUTE").c_str(), type.compute);
  define((start + "LOAD(v)").c_str(), std::string(type.load) + "(v)");
  define((start + "CONVERT(v)").c_str(),
         dtype == TENON_DTYPE_BOOL ? "((v) != 0)"
         : is_complex(dtype)       ? "(v)"  // C converts no struct: it is one already
                                   : "((" + std::string(type.compute) + ")(v))");
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
