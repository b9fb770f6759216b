// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../failures.hpp"
#include "trace.hpp"

namespace simulated {
namespace {

// The caller passes no size: the header of the file knows where its last part ends.
uint64_t image_bytes(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  uint64_t end = header->e_shoff + uint64_t{header->e_shnum} * header->e_shentsize;
  const auto* sections =
      reinterpret_cast<const Elf64_Shdr*>(static_cast<const char*>(image) + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type != SHT_NOBITS)
      end = std::max(end, sections[i].sh_offset + sections[i].sh_size);
  return end;
}

// A program for sm_80 runs on sm_86, not on sm_90; gfx90a runs gfx90a alone.
bool runs_on(std::string program, std::string device) {
  program = program.substr(0, program.find(':'));
  device = device.substr(0, device.find(':'));
  if (program == device || SIMULATED_HIP || program.size() != device.size())
    return program == device;
  const size_t last = program.size() - 1;
  return program.substr(0, last) == device.substr(0, last) && program[last] <= device[last];
}

// The code for a device in a bundle of several architectures, as Clang's documentation of ClangOffloadBundler describes
// it; the image itself if it is none, NULL if the bundle has nothing for the device.
const void* unbundle(const void* image, const std::string& device) {
  constexpr char kMagic[] = "__CLANG_OFFLOAD_BUNDLE__", kKind[] = "hipv4-amdgcn-amd-amdhsa--";
  const char* bytes = static_cast<const char*>(image);
  if (!SIMULATED_HIP || std::memcmp(bytes, kMagic, sizeof kMagic - 1) != 0) return image;
  const auto read = [&](const char* at) {
    uint64_t number;
    std::memcpy(&number, at, sizeof number);
    return number;
  };
  const char* at = bytes + sizeof kMagic - 1;
  uint64_t entries = read(at);
  for (at += 8; entries > 0; --entries) {
    const uint64_t offset = read(at), size = read(at + 8), length = read(at + 16);
    const std::string name(at + 24, length);
    at += 24 + length;
    const bool is_code = size > 0 && name.rfind(kKind, 0) == 0;
    if (is_code && offset % 4096 == 0 && runs_on(name.substr(sizeof kKind - 1), device))
      return bytes + offset;
  }
  return nullptr;
}

}  // namespace

Module::~Module() {
  DeviceProcess* process;
  if (handle && device.has_process() && !device.process(&process)) process->unload(handle);
}

Error load_module(Device& device, const void* image, std::shared_ptr<Module>* out) {
  image = unbundle(image, device.architecture());
  if (!image) return error::NO_BINARY_FOR_GPU;
  const uint64_t bytes = image_bytes(image);
  if (bytes == 0) return error::INVALID_IMAGE;
  DeviceProcess* process;
  TRY(device.process(&process));
  const int file = memfd_create("simulated-program", MFD_CLOEXEC);
  if (file < 0) return error::OPERATING_SYSTEM;
  uint64_t written = 0;
  while (written < bytes) {
    const ssize_t put = write(file, static_cast<const char*>(image) + written, bytes - written);
    if (put <= 0) break;
    written += static_cast<uint64_t>(put);
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
  auto module = std::make_shared<Module>(device);
  std::string architecture;
  std::vector<KernelInfo> kernels;
  Error error = written == bytes ? process->load(path, &module->handle, &architecture, &kernels)
                                 : error::OPERATING_SYSTEM;
  close(file);
  if (error) return error;
  if (!runs_on(architecture, device.architecture())) return error::NO_BINARY_FOR_GPU;
  for (KernelInfo& kernel : kernels)
    module->functions.push_back(std::make_unique<Function>(Function{std::move(kernel), module}));
  *out = std::move(module);
  return error::SUCCESS;
}

Error launch(const Function& function, const LaunchShape& shape, Stream& stream,
             void* const* parameters) {
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  if (threads == 0 || threads > kMaxThreads || shape.block[2] > 64) return error::INVALID_VALUE;
  if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) return error::INVALID_VALUE;
  if (shape.grid[0] > 0x7fffffffu || shape.grid[1] > 65535 || shape.grid[2] > 65535)
    return error::INVALID_VALUE;
  if (shape.shared_bytes > kMaxSharedBytes) return error::INVALID_VALUE;
  std::shared_ptr<Module> module = function.module();
  if (!module) return error::INVALID_HANDLE;
  if (&module->device != &stream.device) return error::INVALID_HANDLE;

  // Arguments are read now; the caller may change them when the call returns.
  auto arguments = std::make_shared<std::vector<char>>();
  const std::vector<uint32_t>& sizes = function.info.parameter_bytes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!parameters || !parameters[i]) return error::INVALID_VALUE;
    const uint64_t at = (arguments->size() + kArgumentAlignment - 1) & ~(kArgumentAlignment - 1);
    arguments->resize(at + sizes[i]);
    std::memcpy(arguments->data() + at, parameters[i], sizes[i]);
  }
  if (arguments->size() > sizeof(Channel::payload)) return error::INVALID_VALUE;

  auto run = [module, &function, shape, arguments]() -> Error {
    if (Error error = count_call("kernel")) return error;
    DeviceProcess* process;
    TRY(module->device.process(&process));
    DeviceProcess::Launch request = {.kernel = function.info.handle,
                                     .grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
                                     .block = {shape.block[0], shape.block[1], shape.block[2]},
                                     .shared_bytes = shape.shared_bytes,
                                     .arguments = arguments.get()};
    std::string where;
    const Error error = process->run(request, &where);
    static const bool log = environment("SIMULATED_LOG", 0) != 0;
    if (error && log)
      std::fprintf(stderr, "simulated: kernel %s: %s\n", function.info.name.c_str(), where.c_str());
    return error;
  };
  return stream.submit(traced(stream, kSimulatedKernel, function.info.name, 0, std::move(run)));
}

}  // namespace simulated
