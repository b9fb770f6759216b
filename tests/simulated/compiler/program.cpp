// SPDX-License-Identifier: Apache-2.0
// The functions of NVRTC and of HIPRTC, which differ in their names.
#include <cstring>
#include <new>
#include <string>

#include "../failures.hpp"
#include "compile.hpp"

#if SIMULATED_HIP
#define NAME(nvrtc, hiprtc) hiprtc
#else
#define NAME(nvrtc, hiprtc) nvrtc
#endif
#define EXPORT extern "C" [[gnu::visibility("default")]]

// Results that both libraries share.
enum Result {
  kSuccess,
  kOutOfMemory,
  kCreationFailed,
  kInvalidInput,
  kInvalidProgram,
  kInvalidOption,
  kCompilationFailed,
  kBuiltinFailed,
  kNoExpressionsAfterCompilation,
  kNoNamesBeforeCompilation,
  kUnknownExpression,
  kInternalError
};

struct RtcProgram {
  simulated::Compilation request;
  std::string image, log;
  bool compiled = false;
};

#define COUNTED(function) \
  if (int error = simulated::count_call(#function)) return error
// Expands the name before it becomes a text.
#define COUNT(function) COUNTED(function)

namespace {

int give(const std::string& text, char* out, size_t zero) {
  if (!out) return kInvalidInput;
  std::memcpy(out, text.c_str(), text.size() + zero);
  return kSuccess;
}

}  // namespace

EXPORT int NAME(nvrtcVersion, hiprtcVersion)(int* major, int* minor) {
  COUNT(NAME(nvrtcVersion, hiprtcVersion));
  *major = SIMULATED_HIP ? 9 : 13;
  *minor = 0;
  return kSuccess;
}

EXPORT const char* NAME(nvrtcGetErrorString, hiprtcGetErrorString)(int result) {
  static const char* const kTexts[] = {"SUCCESS",
                                       "ERROR_OUT_OF_MEMORY",
                                       "ERROR_PROGRAM_CREATION_FAILURE",
                                       "ERROR_INVALID_INPUT",
                                       "ERROR_INVALID_PROGRAM",
                                       "ERROR_INVALID_OPTION",
                                       "ERROR_COMPILATION",
                                       "ERROR_BUILTIN_OPERATION_FAILURE",
                                       "ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                       "ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                       "ERROR_NAME_EXPRESSION_NOT_VALID",
                                       "ERROR_INTERNAL_ERROR"};
  return result >= 0 && result <= kInternalError ? kTexts[result] : "ERROR unknown";
}

EXPORT int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(RtcProgram** out, const char* source,
                                                         const char* name, int headers,
                                                         const char* const* texts,
                                                         const char* const* names) try {
  COUNT(NAME(nvrtcCreateProgram, hiprtcCreateProgram));
  if (!out || !source || headers < 0) return kInvalidInput;
  auto* program = new RtcProgram;
  program->request.source = source;
  program->request.name = name ? name : "default_program";
  program->request.is_hip = SIMULATED_HIP;
  for (int i = 0; i < headers; ++i) program->request.headers.emplace_back(names[i], texts[i]);
  *out = program;
  return kSuccess;
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
}

EXPORT int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(RtcProgram** program) {
  COUNT(NAME(nvrtcDestroyProgram, hiprtcDestroyProgram));
  if (!program || !*program) return kInvalidProgram;
  delete *program;
  *program = nullptr;
  return kSuccess;
}

EXPORT int NAME(nvrtcAddNameExpression, hiprtcAddNameExpression)(RtcProgram* program,
                                                                 const char* expression) {
  COUNT(NAME(nvrtcAddNameExpression, hiprtcAddNameExpression));
  if (!program) return kInvalidProgram;
  if (program->compiled) return kNoExpressionsAfterCompilation;
  if (!expression) return kInvalidInput;
  program->request.expressions.push_back(expression);
  return kSuccess;
}

EXPORT int NAME(nvrtcGetLoweredName, hiprtcGetLoweredName)(RtcProgram* program,
                                                           const char* expression,
                                                           const char** out) {
  COUNT(NAME(nvrtcGetLoweredName, hiprtcGetLoweredName));
  if (!program || !expression || !out) return kInvalidInput;
  if (!program->compiled) return kNoNamesBeforeCompilation;
  for (const std::string& each : program->request.expressions) {
    if (each != expression) continue;
    *out = each.c_str();
    return kSuccess;
  }
  return kUnknownExpression;
}

EXPORT int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(RtcProgram* program, int count,
                                                           const char* const* options) try {
  COUNT(NAME(nvrtcCompileProgram, hiprtcCompileProgram));
  if (!program) return kInvalidProgram;
  for (int i = 0; i < count; ++i) program->request.options.push_back(options[i]);
  switch (simulated::compile(program->request, &program->image, &program->log)) {
    case simulated::Outcome::kDone:
      program->compiled = true;
      return kSuccess;
    case simulated::Outcome::kInvalidOption:
      return kInvalidOption;
    case simulated::Outcome::kFailed:
      return kCompilationFailed;
    default:
      return kInternalError;
  }
} catch (const std::bad_alloc&) {
  return kOutOfMemory;
} catch (...) {
  return kInternalError;
}

EXPORT int NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(RtcProgram* program,
                                                                 size_t* bytes) {
  COUNT(NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize));
  if (!program || !bytes) return kInvalidInput;
  *bytes = program->log.size() + 1;
  return kSuccess;
}

EXPORT int NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(RtcProgram* program, char* out) {
  COUNT(NAME(nvrtcGetProgramLog, hiprtcGetProgramLog));
  return program ? give(program->log, out, 1) : kInvalidProgram;
}

EXPORT int NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(RtcProgram* program, size_t* bytes) {
  COUNT(NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize));
  if (!program || !program->compiled || !bytes) return kInvalidProgram;
  *bytes = program->image.size();
  return kSuccess;
}

EXPORT int NAME(nvrtcGetCUBIN, hiprtcGetCode)(RtcProgram* program, char* out) {
  COUNT(NAME(nvrtcGetCUBIN, hiprtcGetCode));
  return program && program->compiled ? give(program->image, out, 0) : kInvalidProgram;
}

#if !SIMULATED_HIP
EXPORT int nvrtcGetPTXSize(RtcProgram* program, size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}

EXPORT int nvrtcGetPTX(RtcProgram* program, char* out) { return nvrtcGetCUBIN(program, out); }

EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = 4;
  return kSuccess;
}

EXPORT int nvrtcGetSupportedArchs(int* out) {
  const int kAll[] = {75, 80, 90, 100};
  std::memcpy(out, kAll, sizeof kAll);
  return kSuccess;
}
#endif
