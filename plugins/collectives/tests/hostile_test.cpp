// SPDX-License-Identifier: Apache-2.0
// Strangers at the ports of ranks and stores, and a rank that says what no rank says. All of it ends with an error that
// Python can read, or is not heard; the process lives on, and who waits does not wait for strangers.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <tenon/error.hpp>
#include <thread>

#include "control/hello.hpp"
#include "control/store_server.hpp"
#include "group/header.hpp"
#include "support.hpp"

namespace tenon::collectives::test {
namespace {

using Random = std::mt19937;

std::string noise(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void say(const Socket& socket, const std::string& bytes) {
  try {
    socket.write(bytes.data(), bytes.size(), deadline_after(kSecond));
  } catch (const Error&) {  // the other side has hung up
  }
}
template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t port_of(Store& store, int32_t rank) {
  const std::string value =
      store.get("world/rank/" + std::to_string(rank), deadline_after(10 * kSecond));
  unsigned port = 0;
  EXPECT_EQ(sscanf(value.c_str(), "%*d %*s %u", &port), 1);
  return port;
}
std::string token_of(Store& store) {
  return store.get("world/token", deadline_after(10 * kSecond));
}
Socket call(uint32_t port) { return connect_to("127.0.0.1", port, deadline_after(5 * kSecond)); }

// Rank 1 of 2, of which rank 0 is a real one. It comes to the meeting, and says then what it likes.
class FalseRank {
 public:
  explicit FalseRank(Store& store)
      : port_(port_of(store, 0)), token_(token_of(store)), control_(call(port_)) {
    say(control_, bytes_of(make_hello(token_, kControl, 1, "elsewhere", "")));
  }
  const Socket& control() const { return control_; }
  Socket data() const {
    Socket socket = call(port_);
    say(socket, bytes_of(make_hello(token_, kData, 1, "elsewhere", "0")));
    return socket;
  }

 private:
  uint32_t port_;
  std::string token_;
  Socket control_;
};

// What rank 0 of 2 raises while the other is a FalseRank that does as it is told.
std::string beside(const std::function<void(FalseRank&, const Socket& data)>& act, size_t count) {
  LocalStore store;
  std::string text;
  std::thread real([&] {
    try {
      const auto group = join(store, 0, 2, kSecond * 2);
      std::vector<int64_t> buffer(count);
      group->run(call_of(TENON_CALL_ALL_REDUCE, buffer.data(), buffer.data(), count));
    } catch (const Error& error) {
      text = error.what();
    }
  });
  FalseRank rank(store);
  const Socket data = rank.data();
  act(rank, data);
  real.join();
  return text;
}

TEST(Strangers, AreNotWaitedForByRanksThatMeet) {
  LocalStore store;
  std::thread first([&] { join(store, 0, 2); });
  const uint32_t port = port_of(store, 0);
  std::vector<Socket> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(call(port));
  say(silent[3], "half a hello");
  const uint64_t began = now_ns();
  join(store, 1, 2);
  first.join();
  EXPECT_LT(now_ns() - began, 10 * kSecond);  // and not 5 s for each of them
}

TEST(Strangers, CostRanksNoHeartbeat) {
  LocalStore store;
  std::atomic<bool> is_over = false;
  std::thread first([&] {
    const auto group = join(store, 0, 2);
    while (!is_over) std::this_thread::yield();
  });
  const auto group = join(store, 1, 2);
  std::vector<Socket> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(call(port_of(store, 0)));
  uint64_t longest = 0;
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    tenon_group_peer peer;
    group->meeting().copy_peers(&peer, 1);
    longest = std::max(longest, peer.heard_ns);
  }
  is_over = true;
  first.join();
  EXPECT_LT(longest, 2 * kSecond);
}

// Says something that resembles the first words of a rank, or does not.
void visit(uint32_t port, Random& random) {
  Hello hello =
      make_hello(noise(random, 32), random() % 3, static_cast<int32_t>(random() % 4), "x", "0");
  if (random() % 4 == 0) hello.magic[2] ^= 1;
  std::string bytes = bytes_of(hello);
  if (random() % 2) bytes = noise(random, random() % 600);
  try {
    say(connect_to("127.0.0.1", port, deadline_after(kSecond / 10)),
        bytes + noise(random, random() % 300));
  } catch (const Error&) {  // the ranks have left
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Strangers, AreNotHeard) {
  LocalStore store;
  Random random(1);
  std::atomic<bool> is_over = false;
  std::thread strangers([&] {
    const uint32_t port = port_of(store, 0);
    while (!is_over) visit(port, random);
  });
  std::vector<std::thread> ranks;
  std::atomic<int> right = 0;
  for (int32_t rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      const auto group = join(store, rank, 2);
      for (int64_t i = 0; i < 200; ++i) {
        int64_t number = i;
        group->run(call_of(TENON_CALL_ALL_REDUCE, &number, &number, 1));
        right += number == 2 * i;
      }
    });
  for (std::thread& rank : ranks) rank.join();
  is_over = true;
  strangers.join();
  EXPECT_EQ(right, 400);
}

TEST(FalseRanks, FramesOfControl) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    std::string bytes;
    for (int i = 0; i < 5; ++i) {
      const uint32_t size = round % 4 == 0 ? static_cast<uint32_t>(random())
                            : random() % 2 ? sizeof(tenon_group_record)
                                           : random() % 64;
      bytes += bytes_of(FrameHead{static_cast<uint32_t>(random() % 4), size});
      bytes += noise(random, std::min<uint32_t>(size, 4096));
    }
    const std::string text = beside(
        [&](FalseRank& rank, const Socket& data) {
          say(rank.control(), bytes);
          rank.control().end_writing();
          data.end_writing();
        },
        4);
    EXPECT_NE(text, "") << "round " << round;
    EXPECT_EQ(text, readable(text));
  }
}

TEST(FalseRanks, FailuresOfNoKind) {
  for (const int32_t kind : {0, -1, 5, 1 << 30}) {
    const std::string words = "\xff\xfe told";
    const auto size = static_cast<uint32_t>(sizeof kind + words.size());
    const std::string text = beside(
        [&](FalseRank& rank, const Socket&) {
          say(rank.control(), bytes_of(FrameHead{kFailure, size}) + bytes_of(kind) + words);
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        },
        4);
    expect_says(text, "rank 1 is gone");
  }
  const int32_t aborted = TENON_COLLECTIVE_ABORTED;
  const std::string words = "\xff\xfe told";
  const auto size = static_cast<uint32_t>(sizeof aborted + words.size());
  EXPECT_EQ(
      beside(
          [&](FalseRank& rank, const Socket&) {
            say(rank.control(), bytes_of(FrameHead{kFailure, size}) + bytes_of(aborted) + words);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          },
          4),
      "?? told");
}

TEST(FalseRanks, HeadersOfCalls) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    CallHeader header = {};
    header.magic = kCallMagic;
    header.kind = TENON_CALL_ALL_REDUCE;
    header.count = 4;
    header.dtype = TENON_DTYPE_I64;
    std::string bytes = bytes_of(header) + std::string(32, '\1');
    if (round % 2)  // one bit of what is compared
      bytes[random() % 28] ^= static_cast<char>(1 << random() % 8);
    else
      bytes = noise(random, bytes.size());
    const std::string text = beside([&](FalseRank&, const Socket& data) { say(data, bytes); }, 4);
    expect_says(text, "expected all ranks to make the same call");
    EXPECT_EQ(text, readable(text));
  }
}

TEST(FalseRanks, DataThatEndEarly) {
  CallHeader header = {};
  header.magic = kCallMagic;
  header.kind = TENON_CALL_ALL_REDUCE;
  header.count = 100'000;
  header.dtype = TENON_DTYPE_I64;
  const std::string text = beside(
      [&](FalseRank& rank, const Socket& data) {
        say(data, bytes_of(header) + std::string(5000, '\1'));
        data.shut_down();
        rank.control().shut_down();
      },
      100'000);
  expect_says(text, "rank 1 is gone");
}

TEST(Stores, AServerOutlivesWhatClientsSay) {
  Secret secret;
  secret.fill(7);
  StoreServer server("127.0.0.1", 0, secret);
  Random random(4);
  StoreHello hello = {};
  memcpy(hello.magic, kStoreMagic, sizeof hello.magic);
  hello.secret = secret;
  for (int round = 0; round < 150; ++round) {
    const Socket socket = call(server.port());
    if (round % 3 == 0) {
      say(socket, noise(random, random() % 200));
      continue;
    }
    StoreRequest request = {static_cast<uint32_t>(random() % 7),
                            static_cast<uint32_t>(random() % 40), random() % 40, random()};
    if (random() % 4 == 0) request.key_bytes = static_cast<uint32_t>(random());
    if (random() % 4 == 0) request.value_bytes = (uint64_t{random()} << 32) | random();
    if (request.operation == kGet) request.wait_ns = 0;
    say(socket, bytes_of(hello) + bytes_of(request) + noise(random, random() % 100));
    if (random() % 2) {
      StoreAnswer answer;
      try {
        socket.read(&answer, sizeof answer, deadline_after(kSecond));
      } catch (const Error&) {  // it has hung up
      }
    }
  }
  TcpStore client("127.0.0.1", server.port(), secret, 20 * kSecond);
  client.set("key", "value");
  EXPECT_EQ(client.get("key", deadline_after(kSecond)), "value");
  EXPECT_EQ(client.add("number", 3), 3);
}

TEST(Stores, ClientsRefuseWhatIsNoAnswer) {
  Random random(5);
  Secret secret;
  secret.fill(7);
  for (int round = 0; round < 60; ++round) {
    const Socket listener = listen_on("127.0.0.1", 0);
    std::thread server([&] {
      const Socket socket = accept_from(listener, deadline_after(10 * kSecond));
      StoreHello hello;
      socket.read(&hello, sizeof hello, deadline_after(5 * kSecond));
      StoreAnswer answer = {round % 4 ? TENON_OK : static_cast<int32_t>(random()), 0, 0};
      say(socket, bytes_of(answer));
      StoreRequest request;
      char key[3];
      try {
        socket.read(&request, sizeof request, deadline_after(5 * kSecond));
        socket.read(key, sizeof key, deadline_after(5 * kSecond));
      } catch (const Error&) {  // refused before
        return;
      }
      answer = {static_cast<int32_t>(random() % 3), 0, random() % 50};
      if (round % 5 == 0) answer.bytes = (uint64_t{random()} << 32) | random();
      say(socket, bytes_of(answer) + noise(random, random() % 60));
      socket.end_writing();
    });
    try {
      TcpStore client("127.0.0.1", listener.local_port(), secret, 5 * kSecond);
      client.get("key", deadline_after(kSecond));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
    server.join();
  }
}

TEST(Stores, AServerThatStopsTellsWhoWaits) {
  Secret secret;
  secret.fill(7);
  auto server = std::make_unique<StoreServer>("127.0.0.1", 0, secret);
  std::vector<std::thread> clients;
  std::atomic<int> told = 0;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      try {
        TcpStore client("127.0.0.1", server->port(), secret, 20 * kSecond);
        ++told;
        client.get("never", deadline_after(60 * kSecond));
      } catch (const Error&) {
        ++told;
      }
    });
  while (told < 4) std::this_thread::yield();
  server.reset();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(told, 8);
}

TEST(Texts, AreUtf8) {
  EXPECT_EQ(readable("tr\xc3\xa4in.py"), "tr\xc3\xa4in.py");
  EXPECT_EQ(readable("\xc3"), "?");
  EXPECT_EQ(readable("\xed\xa0\x80"), "???");  // half of a pair
  EXPECT_EQ(readable("\xf0\x9f\x98\x80\xff"), "\xf0\x9f\x98\x80?");
  EXPECT_EQ(readable("\xc0\x80\xf5"), "???");
  char text[6];
  copy_text(text, "abcd\xc3\xa4");
  EXPECT_STREQ(text, "abcd");
  copy_text(text, "abc\xc3\xa4");
  EXPECT_STREQ(text, "abc\xc3\xa4");
}

}  // namespace
}  // namespace tenon::collectives::test
