// SPDX-License-Identifier: Apache-2.0
// alloc, free, copy and fill on the synchronous stream.
#include <algorithm>
#include <cstring>

#include "subject/device.hpp"
#include "subject/growth.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

constexpr unsigned char kGuard = 0xc3;
constexpr uint64_t kGuardBytes = 64;

// Copies to the device come from host addresses that no power of two divides, too.
const uint64_t kSizes[] = {1,   2,    3,    4,    7,    8,    15,   16,    17,
                           31,  32,   33,   63,   64,   65,   127,  255,   256,
                           257, 1000, 1023, 1025, 4095, 4096, 4097, 65537, (1 << 20) + 3};

uint64_t address(const Buffer& buffer) { return reinterpret_cast<uint64_t>(buffer.memory()); }

void alignment(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  if (device.is_opaque()) session.absent("memory of this device is opaque: it has no address");
  for (uint64_t align = 1; align <= 4096; align *= 2)
    for (uint64_t bytes : {1, 3, 64, 1000, 4097}) {
      session.step(text("alloc of ", bytes, " bytes, aligned to ", align));
      Buffer first = device.alloc(bytes, nullptr, align),
             second = device.alloc(bytes, nullptr, align);
      for (const Buffer* buffer : {&first, &second})
        session.expect(address(*buffer) % align == 0,
                       text("alloc of ", bytes, " bytes: an address that ", align, " divides"),
                       text(buffer->memory()));
    }
}

// Host and device memory around what is copied must stay as it is.
void copy_grid(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  for (uint64_t bytes : kSizes)
    for (uint64_t offset : {0, 1, 3, 16}) {
      std::string what = text("copy of ", bytes, " bytes at offset ", offset);
      session.step(what);
      uint64_t room = bytes + 2 * kGuardBytes + offset;
      Buffer buffer = device.alloc(room);
      Bytes image(room, kGuard);
      device.put(buffer, 0, image.data(), room);
      Bytes data = pattern(bytes, static_cast<uint32_t>(bytes + offset));
      Bytes shifted(offset);  // so that the source lies at an odd address, too
      shifted.insert(shifted.end(), data.begin(), data.end());
      device.put(buffer, kGuardBytes + offset, shifted.data() + offset, bytes);
      std::copy(data.begin(), data.end(),
                image.begin() + static_cast<int64_t>(kGuardBytes + offset));
      std::string difference = first_difference(image, device.read(buffer));
      if (!session.expect(difference.empty(), what + " to the device changes just these bytes",
                          difference))
        return;
      Bytes host(room, kGuard);
      device.get(host.data() + kGuardBytes + offset, buffer, kGuardBytes + offset, bytes);
      difference = first_difference(image, host);
      if (!session.expect(difference.empty(), what + " to the host changes just these bytes",
                          difference))
        return;
    }
}

void copy_d2d(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  for (uint64_t bytes : kSizes)
    for (uint64_t offset : {0, 1, 8}) {
      std::string what = text("copy on the device of ", bytes, " bytes at offset ", offset);
      session.step(what);
      uint64_t room = bytes + kGuardBytes + offset;
      Buffer from = device.alloc(room), to = device.alloc(room);
      Bytes data = pattern(room), image(room, kGuard);
      device.put(from, 0, data.data(), room);
      device.put(to, 0, image.data(), room);
      device.copy(to, offset, from, 8, bytes);
      std::copy_n(data.begin() + 8, bytes, image.begin() + static_cast<int64_t>(offset));
      std::string difference = first_difference(image, device.read(to));
      if (!session.expect(difference.empty(), what, difference)) return;
      difference = first_difference(data, device.read(from));
      if (!session.expect(difference.empty(), what + ": the source stays", difference)) return;
    }
}

// Around powers of two, where blocks and counters end.
void large(Session& session) {
  constexpr uint64_t kRoom = (64 << 20) + 1;
  Plugin plugin(session);
  Device device(plugin);
  const Bytes data = pattern(kRoom);
  Bytes back(kRoom);
  Buffer from, to;
  try {
    from = device.alloc(kRoom);
    to = device.alloc(kRoom);
  } catch (const Stop&) {
    return;  // alloc has told
  }
  auto expect_end = [&](const Buffer& buffer, uint64_t bytes, const std::string& what) {
    back.assign(bytes, 0);
    device.get(back.data(), buffer, 0, bytes);
    const bool is_equal = std::memcmp(back.data(), data.data(), bytes) == 0;
    return session.expect(
        is_equal, text(what, " of ", bytes, " bytes"),
        is_equal ? "" : first_difference(Bytes(data.begin(), data.begin() + int64_t(bytes)), back));
  };
  for (int power = 17; power <= 26; ++power)
    for (uint64_t bytes : {(uint64_t{1} << power) - 1, (uint64_t{1} << power) + 1}) {
      session.step(text("copies of ", bytes, " bytes"));
      const unsigned char nothing = 0;
      for (const Buffer* buffer : {&from, &to}) device.fill(*buffer, bytes - 1, 1, &nothing, 1);
      device.put(from, 0, data.data(), bytes);
      if (!expect_end(from, bytes, "copy to the device and back")) return;
      device.copy(to, 0, from, 0, bytes);
      if (!expect_end(to, bytes, "copy on the device")) return;
      session.step(text("fill of ", bytes, " bytes"));
      const unsigned char seven = 7;
      unsigned char ends[3] = {};
      device.fill(to, 0, bytes, &seven, 1);
      device.get(&ends[0], to, 0, 1);
      device.get(&ends[1], to, bytes / 2, 1);
      device.get(&ends[2], to, bytes - 1, 1);
      for (unsigned char end : ends)
        if (!session.expect(end == 7, text("fill of ", bytes, " bytes fills all of them"),
                            text("the first, the middle and the last are ", hex(ends[0]), ", ",
                                 hex(ends[1]), " and ", hex(ends[2]))))
          return;
    }
}

// Offsets beyond 32 bits. The memory between them is never touched.
void offsets(Session& session) {
  constexpr uint64_t kFar = uint64_t{1} << 32, kBytes = 4096;
  Plugin plugin(session);
  Device device(plugin);
  void* memory = nullptr;
  Error error;
  session.step("alloc of 4 GiB and some more");
  if (device.alloc_raw(kFar + 2 * kBytes, 256, nullptr, &memory, error) != TENON_OK)
    session.absent("the device has no 4 GiB in one piece: " + error.text());
  Buffer buffer(device, memory, kFar + 2 * kBytes);
  const Bytes near = pattern(kBytes, 1), far = pattern(kBytes, 2);
  Bytes got(kBytes);
  auto expect_at = [&](uint64_t offset, const Bytes& wanted, const std::string& what) {
    device.get(got.data(), buffer, offset, kBytes);
    const std::string difference = first_difference(wanted, got);
    return session.expect(difference.empty(), text(what, ", ", offset, " bytes into an allocation"),
                          difference, "offsets and sizes have 64 bits");
  };
  session.step("copies and fills beyond 4 GiB");
  device.put(buffer, 0, near.data(), kBytes);
  device.put(buffer, kFar, far.data(), kBytes);
  if (!expect_at(kFar, far, "copies") || !expect_at(0, near, "copies leave alone what lies"))
    return;
  device.fill(buffer, kFar, kBytes, "\x5a", 1);
  if (!expect_at(kFar, Bytes(kBytes, 0x5a), "fill") ||
      !expect_at(0, near, "fill leaves alone what lies"))
    return;
  device.copy(buffer, kFar + kBytes, buffer, 0, kBytes);
  expect_at(kFar + kBytes, near, "copy on the device");
}

// What the first device does the others do, too.
void devices(Session& session) {
  Plugin plugin(session);
  const size_t count = Device::enumerate(plugin).size();
  if (count < 2) session.absent("there is one device on this machine");
  for (uint32_t index = 1; index < std::min<size_t>(count, 4); ++index) {
    Device device(plugin, index);
    for (uint64_t bytes : {1, 7, 4096, 65537, (1 << 20) + 3}) {
      const std::string what = text("of ", bytes, " bytes, on device ", index);
      session.step("copies and fills " + what);
      Buffer from = device.alloc(bytes), to = device.alloc(bytes);
      const Bytes data = pattern(bytes, index), filled(bytes, 0x3c);
      device.fill(to, 0x11);
      device.put(from, 0, data.data(), bytes);
      device.copy(to, 0, from, 0, bytes);
      std::string difference = first_difference(data, device.read(to));
      if (!session.expect(difference.empty(), "copies " + what, difference)) return;
      device.fill(from, 0x3c);
      difference = first_difference(filled, device.read(from));
      if (!session.expect(difference.empty(), "fill " + what, difference)) return;
    }
  }
}

// Absent where the two cannot: the host copies then.
void peer(Session& session) {
  Plugin plugin(session);
  Device from(plugin, 0), to(plugin, 1);
  for (uint64_t bytes : kSizes)
    for (uint64_t offset : {0, 1, 8}) {
      const std::string what =
          text("copy of ", bytes, " bytes from device 0 to device 1 at offset ", offset);
      session.step(what);
      const uint64_t room = bytes + kGuardBytes + offset;
      Buffer source = from.alloc(room), target = to.alloc(room);
      Bytes data = pattern(room), image(room, kGuard);
      from.put(source, 0, data.data(), room);
      to.put(target, 0, image.data(), room);
      const bool is_opaque = to.is_opaque();  // a handle then, which takes no arithmetic
      tenon_copy_request request{
          .struct_size = sizeof request,
          .direction = TENON_COPY_DEVICE_TO_DEVICE,
          .must_understand = TENON_COPY_PEER,
          .dst = static_cast<char*>(target.memory()) + (is_opaque ? 0 : offset),
          .src = static_cast<const char*>(source.memory()) + (is_opaque ? 0 : 8),
          .bytes = bytes,
          .dst_offset = is_opaque ? offset : 0,
          .src_offset = is_opaque ? uint64_t{8} : 0,
          .stream = nullptr,
          .src_device = from.handle()};
      Error error;
      const tenon_status status = to.api().copy(to.handle(), &request, error);
      if (status == TENON_UNSUPPORTED) session.absent("these devices do not copy to each other");
      to.check(status, error, what);
      std::copy_n(data.begin() + 8, bytes, image.begin() + static_cast<int64_t>(offset));
      std::string difference = first_difference(image, to.read(target));
      if (!session.expect(difference.empty(), what, difference)) return;
      difference = first_difference(data, from.read(source));
      if (!session.expect(difference.empty(), what + ": the source stays", difference)) return;
    }
}

void fill_grid(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  const Bytes repeated = {0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87,
                          0x98, 0xa9, 0xba, 0xcb, 0xdc, 0xed, 0xfe, 0x0f};
  for (uint32_t pattern_bytes : {1, 2, 4, 8, 16})
    for (uint64_t count : {1, 2, 3, 5, 16, 63, 64, 65, 1000, 65537})
      for (uint64_t offset : {0, 1, 3}) {
        uint64_t bytes = count * pattern_bytes, start = offset * pattern_bytes;
        std::string what =
            text("fill of ", bytes, " bytes at ", start, " with a pattern of ", pattern_bytes);
        session.step(what);
        uint64_t room = bytes + start + kGuardBytes;
        Buffer buffer = device.alloc(room);
        Bytes image(room, kGuard);
        device.put(buffer, 0, image.data(), room);
        device.fill(buffer, start, bytes, repeated.data(), pattern_bytes);
        for (uint64_t i = 0; i < bytes; ++i) image[start + i] = repeated[i % pattern_bytes];
        std::string difference = first_difference(image, device.read(buffer));
        if (!session.expect(difference.empty(), what, difference)) return;
      }
}

void overlap(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  for (uint64_t bytes : {16, 100, 4096, 100000})
    for (int64_t shift : {1, 3, 8, 64, 5000})
      for (bool forward : {true, false}) {
        if (static_cast<uint64_t>(shift) >= bytes) continue;
        std::string what = text("copy of ", bytes, " bytes ", shift,
                                forward ? " bytes up, onto itself" : " bytes down, onto itself");
        session.step(what);
        uint64_t room = bytes + static_cast<uint64_t>(shift);
        Buffer buffer = device.alloc(room);
        Bytes data = pattern(room);
        device.put(buffer, 0, data.data(), room);
        uint64_t low = 0, high = static_cast<uint64_t>(shift);
        device.copy(buffer, forward ? high : low, buffer, forward ? low : high, bytes);
        std::memmove(data.data() + (forward ? high : low), data.data() + (forward ? low : high),
                     bytes);
        std::string difference = first_difference(data, device.read(buffer));
        if (!session.expect(difference.empty(), what + ", as memmove does", difference)) return;
      }
}

void distinct(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 200; ++i) {
    uint64_t bytes = 1 + i * 37 % 5000;
    session.step(text("allocation ", i, " of ", bytes, " bytes"));
    buffers.push_back(device.alloc(bytes));
    if (i % 3 == 2) buffers.erase(buffers.begin() + i / 3);  // holes, to be used again
  }
  for (uint64_t bytes : {uint64_t{64} << 20, uint64_t{256} << 20}) {
    session.step(text("two allocations of ", bytes, " bytes"));
    void* memory[2] = {};
    for (void*& each : memory) device.alloc_raw(bytes, 256, nullptr, &each, Error());
    std::vector<Buffer> two;
    for (void* each : memory)
      if (each) two.emplace_back(device, each, bytes);
    if (two.size() < 2) continue;  // it has no room for them
    for (unsigned char i : {1, 2})
      for (uint64_t at : {uint64_t{0}, bytes - 1}) device.put(two[i - 1], at, &i, 1);
    for (unsigned char i : {1, 2})
      for (uint64_t at : {uint64_t{0}, bytes - 1}) {
        unsigned char got = 0;
        device.get(&got, two[i - 1], at, 1);
        if (!session.expect(got == i, "what is written to one large allocation stays there",
                            text("byte ", at, " of ", bytes, " is ", hex(got), ", not ", hex(i)),
                            "two live allocations share memory"))
          return;
      }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    Bytes data = pattern(buffers[i].bytes(), static_cast<uint32_t>(i));
    device.put(buffers[i], 0, data.data(), data.size());
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::string difference = first_difference(pattern(buffers[i].bytes(), static_cast<uint32_t>(i)),
                                              device.read(buffers[i]));
    if (!session.expect(difference.empty(), "what is written to one allocation stays there",
                        text("allocation ", i, ": ", difference),
                        "two live allocations share memory"))
      return;
  }
}

void joined(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  constexpr uint64_t kBytes = 4 << 20, kReach = 5000;  // to each side of where they meet
  Joined memory(device, kBytes);
  const Buffer& whole = memory.whole;
  Bytes image(2 * kBytes, kGuard);
  auto expect_image = [&](const std::string& what) {
    std::string difference = first_difference(image, device.read(whole));
    session.require(difference.empty(), what + ", over where two allocations meet", difference);
  };
  session.step("copies and fills over where two allocations meet");
  device.put(whole, 0, image.data(), image.size());
  expect_image("copy to the device and back");
  Bytes data = pattern(2 * kReach);
  device.put(whole, kBytes - kReach, data.data(), data.size());
  std::copy(data.begin(), data.end(), image.begin() + (kBytes - kReach));
  expect_image("copy to the device changes just the bytes it names");
  device.copy(whole, kBytes - kReach + 300, whole, kBytes - kReach, data.size());
  std::copy(data.begin(), data.end(), image.begin() + (kBytes - kReach + 300));
  expect_image("copy on the device behaves as memmove");
  device.fill(whole, kBytes - 1000, 2000, "\x10\x21\x32\x43", 4);
  for (uint64_t i = 0; i < 2000; ++i)
    image[kBytes - 1000 + i] = static_cast<unsigned char>("\x10\x21\x32\x43"[i % 4]);
  expect_image("fill repeats its pattern");

  session.step("free of the lower of two allocations that were used as one");
  memory.low.release(nullptr);
  Buffer other = device.alloc(kBytes);  // perhaps in its place
  device.fill(other, 0x66);
  Bytes kept(image.begin() + kBytes, image.end());
  std::string difference = first_difference(kept, device.read(memory.high));
  session.expect(difference.empty(), "each of two joined allocations is freed alone", difference);
}

void leak(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  auto use_one = [&](uint64_t bytes) {
    Buffer buffer = device.alloc(bytes);
    device.fill(buffer, 0, std::min<uint64_t>(bytes, 4096), "\x2a", 1);
  };
  auto churn = [&](int rounds, uint64_t bytes) {
    for (int i = 0; i < rounds; ++i) use_one(bytes);
  };
  // More than a counter of 16 bits counts, where that takes no minute.
  const int small = rounds_that_fit(8, 50, 70'000, [&] { use_one(64); }), large = small / 250 + 1;
  if (small < 70'000) session.note(text(small, " allocations, as they take long"));
  churn(std::min(100, small), 64);
  churn(4, 4 << 20);
  Holdings before = holdings();
  session.step(text("alloc and free of 64 bytes, ", small, " times"));
  churn(small, 64);
  session.step(text("alloc and free of 4 MiB, ", large, " times"));
  churn(large, 4 << 20);
  Holdings after = holdings();
  int64_t grown = after.memory - before.memory;
  session.expect(grown < (64 << 20) && after.resident - before.resident < (2 << 20),
                 text("no memory stays over ", small + large, " times alloc and free"),
                 text(grown >> 10, " KiB more, ", (after.resident - before.resident) >> 10,
                      " KiB of them in use"),
                 "give the memory back in `free`");
  if (device.info().memory_bytes == 0) return;
  // Memory that this process does not see: far more than there is, one after the other.
  uint64_t part = std::max<uint64_t>(device.info().memory_bytes / 8, 1);
  for (int i = 0; i < 24; ++i) {
    session.step(text("alloc and free of an eighth of the device's memory, round ", i));
    void* memory = nullptr;
    Error error;
    tenon_status status = device.alloc_raw(part, 256, nullptr, &memory, error);
    if (status != TENON_OK && i == 0) return;  // others use the device, too
    device.check(status, error,
                 text("alloc of ", part, " bytes, after ", i, " like it were freed,"));
    device.api().free(device.handle(), memory, part, nullptr);
  }
}

}  // namespace

const Checks& memory_checks() {
  static const char kBasic[] = "lifecycle.sync";
  static const char kCopies[] = "lifecycle.sync memory.copy_grid";
  static const Checks checks = {
      {"memory.alignment", "Memory is aligned as requested.", "abi.h section 5, alloc",
       "honour request->align, any power of two", kBasic, alignment},
      {"memory.copy_grid", "Copies move just the bytes they name.", "abi.h section 5, copy", "",
       kBasic, copy_grid},
      {"memory.copy_d2d", "Copies on the device move just the bytes they name.",
       "abi.h section 5, copy", "", kCopies, copy_d2d},
      {"memory.large", "Copies and fills of many sizes are whole.", "abi.h section 5, copy",
       "look at the last, partial block, and at counters", kCopies, large},
      {"memory.offsets", "Offsets have 64 bits.", "abi.h section 5, copy", "", kCopies, offsets},
      {"memory.devices", "Every device copies and fills.", "abi.h section 5, enumerate",
       "keep what belongs to a device in its handle", kCopies, devices},
      {"memory.peer", "Copies from another device move just the bytes they name.",
       "abi.h section 5, TENON_COPY_PEER",
       "return TENON_UNSUPPORTED for devices that cannot, and the host copies", kCopies, peer},
      {"memory.fill_grid", "Fills repeat patterns of 1 to 16 bytes.", "abi.h section 5, fill",
       "repeat all pattern_bytes, from the first byte", kCopies, fill_grid},
      {"memory.overlap", "Overlapping copies on the device behave as memmove.",
       "abi.h section 5, copy", "copy backwards, or through a temporary, if the ranges overlap",
       "lifecycle.sync memory.copy_grid memory.copy_d2d", overlap},
      {"memory.distinct", "Live allocations do not overlap.", "abi.h section 5, alloc", "", kCopies,
       distinct},
      {"memory.joined", "Allocations that lie end to end can be used as one.",
       "abi.h section 5, TENON_DEVICE_FEATURE_JOINED_MEMORY",
       "without the feature bit, two allocations are never used as one",
       "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid memory.overlap", joined},
      {"memory.leak", "What is freed is freed, and can be had again.", "abi.h section 5, free", "",
       "lifecycle.sync memory.copy_grid memory.fill_grid async.null_stream", leak},
  };
  return checks;
}

}  // namespace tenon::kit
