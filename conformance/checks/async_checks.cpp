// SPDX-License-Identifier: Apache-2.0
// Streams and events. Every check queues enough work that a plugin which does not wait is caught.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "checks/work.hpp"
#include "subject/growth.hpp"
#include "subject/process.hpp"

namespace tenon::kit {
namespace {

void order(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device);
  constexpr uint64_t kSlots = 64, kBytes = 64 << 10;
  Buffer cell = device.alloc(kBytes), slots = device.alloc(kSlots * kBytes);
  for (int round = 0; round < 4; ++round) {
    session.step("a chain of fills and copies on one stream");
    for (uint64_t i = 0; i < kSlots; ++i) {
      device.fill(cell, static_cast<unsigned char>(i + 1), stream);
      device.copy(slots, i * kBytes, cell, 0, kBytes, stream);
    }
    device.sync(stream);
    Bytes found = device.read(slots);
    for (uint64_t i = 0; i < kSlots; ++i)
      for (uint64_t at : {uint64_t{0}, kBytes / 2, kBytes - 1}) {
        unsigned char got = found[i * kBytes + at];
        if (!session.expect(got == i + 1, text("step ", i, " of the chain sees the one before it"),
                            text("the result of step ", int{got} - 1),
                            "run a stream's work in order"))
          return;
      }
  }
}

void null_stream(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream looker(device);
  Work work(device);
  for (unsigned char round = 1; round <= 4; ++round) {
    session.step("work on the NULL stream, seen from another one");
    work.queue(nullptr, round);
    work.expect(looker, round, "work with stream == NULL is done when the call returns",
                "wait inside calls that have no stream");
  }
}

void event_order(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device), looker(device);
  Work work(device);
  for (unsigned char round = 1; round <= 4; ++round) {
    Event event(device);
    work.reset();
    session.step("event_record and event_sync behind work");
    work.queue(stream, round);
    event.record(stream);
    event.sync();
    work.expect(looker, round, "an event passes after the work before it",
                "an event passes once everything queued before it on its stream is done");
    device.sync(stream);
  }
}

void event_wait(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream maker(device), taker(device);
  Work work(device);
  Buffer seen = device.alloc(kWorkBytes);
  for (unsigned char round = 1; round <= 4; ++round) {
    Event event(device);
    work.reset();
    session.step("a stream that waits for an event of another one");
    work.queue(maker, round);
    event.record(maker);
    event.block(taker);
    device.copy(seen, 0, work.result(), 0, kWorkBytes, taker);
    device.sync(taker);
    Bytes found = device.read(seen);
    session.expect(
        found.front() == round && found.back() == round,
        "work behind stream_wait starts after the event",
        text("it saw ", hex(found.front()), " and ", hex(found.back()), ", not ", hex(round)));
    device.sync(maker);
  }
}

void event_unrecorded(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device);
  Event event(device);
  Buffer buffer = device.alloc(4096);
  session.step("stream_wait for an event that was never recorded");
  event.block(stream);
  device.fill(buffer, 0x77, stream);
  session.step("sync of a stream that waits for an event that was never recorded");
  device.sync(stream);
  session.expect(device.read(buffer)[4095] == 0x77, "waiting for such an event is a no-op",
                 "the work behind it was not done");
}

void event_rerecord(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream first(device), second(device), looker(device);
  Event event(device);
  Work work(device);
  session.step("an event that is recorded again");
  event.record(first);
  event.sync();
  for (unsigned char round = 1; round <= 3; ++round) {
    work.reset();
    work.queue(second, round);
    event.record(second);  // on another stream, with work: the old recording is forgotten
    event.sync();
    work.expect(looker, round, "an event recorded again stands for the new work");
    device.sync(second);
  }
}

void event_query(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device), looker(device);
  Event event(device);
  Work work(device);
  work.queue(stream, 9);
  event.record(stream);
  session.step("event_query until it says done");
  const double start = now();
  while (!event.is_done()) {
    session.require(now() - start < session.time_limit() / 2, "event_query says done at last",
                    "not within half the time limit");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  work.expect(looker, 9, "event_query says done once the work is");
  event.sync();
  session.expect(event.is_done(), "event_query says done after event_sync", "not done");
}

void sync_all(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream one(device), two(device), three(device);
  Work works[] = {Work(device), Work(device), Work(device)};
  const tenon_stream streams[] = {one, two, three};
  for (unsigned char round = 1; round <= 3; ++round) {
    for (Work& work : works) work.reset();
    session.step("sync with stream == NULL while three streams work");
    for (int i = 0; i < 3; ++i) works[i].queue(streams[i], round);
    device.sync(nullptr);
    for (int i = 0; i < 3; ++i)
      works[i].expect(nullptr, round,
                      text("sync with stream == NULL waits for stream ", i + 1, " of 3"));
  }
}

void pageable(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device);
  constexpr uint64_t kBytes = 4 << 20;
  Buffer buffer = device.alloc(kBytes);
  Work work(device);
  for (uint32_t round = 1; round <= 3; ++round) {
    session.step("copy from pageable memory that changes right after the call");
    Bytes original = pattern(kBytes, round), source = original;
    work.queue(stream, 1);  // so that the copy has to wait its turn
    device.put(buffer, 0, source.data(), kBytes, stream);
    std::fill(source.begin(), source.end(), 0xee);
    device.sync(stream);
    std::string difference = first_difference(original, device.read(buffer));
    session.expect(difference.empty(), "pageable memory was read when copy returns", difference,
                   "stage it, or wait, before returning");
    session.step("copy to pageable memory that is read right after the call");
    unsigned char value = static_cast<unsigned char>(0x30 + round);
    work.queue(stream, 2);
    device.fill(buffer, value, stream);
    Bytes target(kBytes, 0);
    device.get(target.data(), buffer, 0, kBytes, stream);
    session.expect(
        target.front() == value && target.back() == value,
        "pageable memory is filled when copy returns, with what the stream computed",
        text("it holds ", hex(target.front()), " and ", hex(target.back()), ", not ", hex(value)),
        "wait for the stream, and for the copy, before returning");
    device.sync(stream);
  }
}

void free_in_flight(Session& session) {
  static const char kFix[] =
      "free in the order of the stream: wait for it, or put the memory aside until its work is "
      "done";
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device), other(device);
  Buffer kept = device.alloc(kWorkBytes);
  for (unsigned char round = 1; round <= 4; ++round) {
    Work work(device);
    Buffer doomed = device.alloc(kWorkBytes);
    session.step("free of memory that queued work still reads and writes");
    device.fill(doomed, round);
    work.queue(stream, 1);
    device.copy(kept, 0, doomed, 0, kWorkBytes, stream);
    device.fill(doomed, 0x0f, stream);
    doomed.release(stream);
    // Memory is allocated again at once, and written.
    std::vector<Buffer> fresh;
    for (int i = 0; i < 3; ++i) {
      fresh.push_back(device.alloc(kWorkBytes, other));
      device.fill(fresh.back(), 0xf0, other);
    }
    device.sync(other);
    device.sync(stream);
    Bytes found = device.read(kept);
    size_t wrong = static_cast<size_t>(
        std::find_if(found.begin(), found.end(), [&](unsigned char c) { return c != round; }) -
        found.begin());
    session.expect(wrong == found.size(), "work queued before `free` still finds its memory",
                   text("byte ", wrong, " is ", hex(found[std::min(wrong, found.size() - 1)]),
                        ", not ", hex(round)),
                   kFix);
    for (Buffer& buffer : fresh) {
      Bytes theirs = device.read(buffer);
      session.expect(theirs.front() == 0xf0 && theirs.back() == 0xf0,
                     "memory allocated after `free` is out of reach of older work",
                     text("it holds ", hex(theirs.front()), ", not 0xf0"), kFix);
    }
  }
}

void expect_no_growth(Session& session, const Holdings& before, const std::string& what) {
  int threads = settled_threads(before.threads);
  Holdings after = holdings();
  session.expect(threads <= before.threads, "no threads stay over " + what,
                 text(threads - before.threads, " more"), "end and join them when it is destroyed");
  session.expect(after.files <= before.files, "no files stay open over " + what,
                 text(after.files - before.files, " more"));
  session.expect(after.resident - before.resident < (2 << 20), "no memory stays over " + what,
                 text((after.resident - before.resident) >> 10, " KiB more"),
                 "free it when it is destroyed");
}

void leak_event(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device);
  auto use_one = [&] {
    Event event(device);
    event.record(stream);
    event.block(stream);
    event.is_done();
    event.sync();
  };
  // More than a counter of 16 bits counts, where that takes no minute.
  const int rounds = rounds_that_fit(15, 1000, 70'000, use_one);
  for (int i = 0; i < 500; ++i) use_one();
  Holdings before = holdings();
  session.step(text(rounds, " events, one after the other"));
  for (int i = 0; i < rounds; ++i) use_one();
  expect_no_growth(session, before, text(rounds, " events"));
  Stream looker(device);
  Work work(device);
  Event event(device);
  session.step(text("an event after ", rounds, " others"));
  work.queue(stream, 0x44);
  event.record(stream);
  event.sync();
  work.expect(looker, 0x44,
              text("an event after ", rounds, " others passes after the work before it"),
              "look for what counts events, or finds them by a number that comes again");
  device.sync(stream);
}

void leak_stream(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Buffer buffer = device.alloc(4096);
  auto churn = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Stream stream(device);
      device.fill(buffer, 0x21, stream);
    }
  };
  churn(20);
  Holdings before = holdings();
  session.step("300 streams, one after the other");
  churn(300);
  expect_no_growth(session, before, "300 streams");
}

// Many streams at once, some of them in the place of others that were destroyed: each waits for an
// event of one that is busy, and is waited for.
void many_streams(Session& session) {
  constexpr size_t kStreams = 40, kDestroyed = 8;
  constexpr uint64_t kPart = 4096;
  Plugin plugin(session);
  Device device(plugin);
  Stream maker(device), looker(device);
  std::vector<std::unique_ptr<Stream>> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    session.step(text("stream ", i + 1, " of ", kStreams));
    streams.push_back(std::make_unique<Stream>(device));
  }
  Work work(device);
  Buffer seen = device.alloc(kStreams * kPart);
  for (unsigned char round : {0x31, 0x32}) {
    work.reset();
    device.fill(seen, 0);
    session.step(text(kStreams, " streams that wait for an event of another one"));
    Event made(device);
    std::vector<std::unique_ptr<Event>> done;
    work.queue(maker, round);
    made.record(maker);
    for (size_t i = 0; i < kStreams; ++i) {
      made.block(*streams[i]);
      device.copy(seen, i * kPart, work.result(), kWorkBytes - kPart, kPart, *streams[i]);
      done.push_back(std::make_unique<Event>(device));
      done.back()->record(*streams[i]);
    }
    for (size_t i = 0; i < kStreams; ++i) {
      done[i]->sync();
      unsigned char byte = 0;
      device.get(&byte, seen, i * kPart + kPart - 1, 1, looker);
      if (!session.expect(byte == round,
                          text("stream ", i + 1, " of ", kStreams,
                               " waits for the event, and its own event for its work"),
                          text("it saw ", hex(byte), ", not ", hex(round))))
        break;
    }
    device.sync();
    for (size_t i = 0; i < kDestroyed; ++i) streams[i * 4] = nullptr;
    for (size_t i = 0; i < kDestroyed; ++i) streams[i * 4] = std::make_unique<Stream>(device);
  }
}

// A wait has no end of its own.
void long_wait(Session& session) {
  constexpr int kParts = 24;  // of some 30 ms each
  Plugin plugin(session);
  Device device(plugin);
  Stream stream(device), looker(device);
  Work work(device);
  for (bool by_event : {false, true}) {
    work.reset();
    Event event(device);
    session.step(by_event ? "event_sync behind long work" : "sync behind long work");
    for (int i = 0; i < kParts; ++i) work.queue(stream, static_cast<unsigned char>(i));
    work.queue(stream, 0x55);
    event.record(stream);
    if (by_event)
      event.sync();
    else
      device.sync(stream);
    work.expect(looker, 0x55, text(by_event ? "event_sync" : "sync", " waits as long as it takes"),
                "wait without a limit, or again until the work is done");
    device.sync();
  }
}

void destroy(Session& session) {
  Plugin plugin(session);
  Device device(plugin);
  Stream looker(device);
  Work work(device);
  for (unsigned char round = 1; round <= 3; ++round) {
    work.reset();
    session.step("stream_destroy while work is queued");
    {
      Stream stream(device);
      work.queue(stream, round);
    }
    work.expect(looker, round, "stream_destroy waits for the work that is queued",
                "wait for the stream before it goes");
    device.sync();
  }
}

}  // namespace

const Checks& async_checks() {
  static const char kNeeds[] = "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid";
  static const char kOrdered[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.null_stream "
      "async.order";
  static const char kMany[] =
      "lifecycle.sync memory.copy_grid memory.copy_d2d memory.fill_grid async.order "
      "async.event_order async.event_wait";
  static const Checks checks = {
      {"async.null_stream", "Work without a stream is done when the call returns.",
       "abi.h section 5, tenon_device_api: order", "", kNeeds, null_stream},
      {"async.order", "Work on one stream runs in order.",
       "abi.h section 5, tenon_device_api: order", "", kNeeds, order},
      {"async.event_order", "An event passes after the work before it.",
       "abi.h section 5, event_record", "", kOrdered, event_order},
      {"async.event_wait", "A stream waits for another one's event.",
       "abi.h section 5, stream_wait", "", kOrdered, event_wait},
      {"async.event_unrecorded", "Waiting for an event that was never recorded is a no-op.",
       "abi.h section 5, stream_wait", "count an event as passed until it is recorded", kOrdered,
       event_unrecorded},
      {"async.event_rerecord", "An event can be recorded again.", "abi.h section 5, event_record",
       "", "lifecycle.sync async.order async.event_order", event_rerecord},
      {"async.event_query", "event_query tells, and does not wait.", "abi.h section 5, event_query",
       "", "lifecycle.sync async.order async.event_order", event_query},
      {"async.sync_all", "sync without a stream waits for all of them.", "abi.h section 5, sync",
       "walk all streams of the device", kOrdered, sync_all},
      {"async.pageable", "Pageable host memory can be used again when copy returns.",
       "abi.h section 5, copy", "", kOrdered, pageable},
      {"async.free_in_flight", "Memory can be freed while queued work uses it.",
       "abi.h section 5, free", "", kOrdered, free_in_flight},
      {"async.many_streams", "The fortieth stream is as good as the first.",
       "abi.h section 5, stream_wait", "look for tables of a fixed size", kMany, many_streams},
      {"async.long_wait", "A wait lasts as long as the work.", "abi.h section 5, sync", "",
       kOrdered, long_wait},
      {"async.destroy", "A stream that is destroyed finishes its work.",
       "abi.h section 5, stream_destroy", "", kOrdered, destroy},
      {"async.leak_event", "Events leave nothing behind, and the last is as good as the first.",
       "abi.h section 5, event_destroy", "", kOrdered, leak_event},
      {"async.leak_stream", "Streams leave nothing behind.", "abi.h section 5, stream_destroy", "",
       kOrdered, leak_stream},
  };
  return checks;
}

}  // namespace tenon::kit
