// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <tenon/error.hpp>
#include <thread>

#include "hash.hpp"
#include "merge.hpp"

namespace tenon::tables {
namespace {

tenon_table_options options_of(uint32_t dim, uint32_t state = 0) {
  tenon_table_options options = {};
  options.struct_size = sizeof options;
  options.dim = dim;
  options.state_width = state;
  options.seed = 7;
  options.initial_range = 0.5f;
  options.threshold = 1;
  options.show_weight = 1;
  options.decay = 1;
  return options;
}

// Adds `by` to the embedding of each id that has a row, or gets one.
uint64_t push(Table& table, uint32_t width, const std::vector<int64_t>& ids, float by,
              float show = 1, float click = 0) {
  std::vector<float> shows(ids.size(), show), clicks(ids.size(), click);
  std::vector<int64_t> indices(ids.size()), updated;
  std::vector<float> values(ids.size() * width);
  const uint64_t rows = table.push_begin(ids.data(), shows.data(), clicks.data(), ids.size(),
                                         indices.data(), values.data());
  for (uint64_t r = 0; r < rows; ++r) {
    updated.push_back(ids[static_cast<size_t>(indices[r])]);
    values[r * width] += by;
  }
  table.push_end(updated.data(), values.data(), rows);
  return rows;
}

float pulled(Table& table, int64_t id) {
  float row[8];
  table.pull(&id, 1, row);
  return row[0];
}

TEST(Part, KeepsWhatAMapKeepsWhileIdsComeAndGo) {
  Part part(1);
  std::map<uint64_t, float> expected;
  std::mt19937_64 random(3);
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t id = random() % 3000;
    if (random() % 3) {
      Record* record = part.find(id, mix(id));
      if (!record) record = part.insert(id, mix(id));
      *record->values() = expected[id] = static_cast<float>(step);
    } else {
      part.erase(id, mix(id));
      expected.erase(id);
    }
  }
  EXPECT_EQ(part.size(), expected.size());
  for (uint64_t id = 0; id < 3000; ++id) {
    const Record* record = part.find(id, mix(id));
    const auto at = expected.find(id);
    ASSERT_EQ(record != nullptr, at != expected.end()) << id;
    if (record) EXPECT_EQ(*record->values(), at->second);
  }
}

TEST(Table, RowsBeginBySeedAndIdAlone) {
  Table table(options_of(8)), other(options_of(8));
  const float before = pulled(table, -5);
  EXPECT_GE(before, -0.5f);
  EXPECT_LT(before, 0.5f);
  EXPECT_EQ(before, pulled(other, -5));
  EXPECT_NE(before, pulled(table, 5));
  EXPECT_EQ(table.counters().rows, 0u) << "a pull makes no row";
  EXPECT_EQ(push(table, 8, {-5, 9}, 2.0f), 2u);
  EXPECT_EQ(pulled(table, -5), before + 2.0f);
  EXPECT_EQ(table.counters().rows, 2u);
}

TEST(Table, CandidatesAreZerosUntilTheirScoreIsEnough) {
  tenon_table_options options = options_of(1);
  options.entry = TENON_TABLE_ENTRY_SCORE;
  options.threshold = 3;
  options.click_weight = 2;
  Table table(options);
  EXPECT_EQ(push(table, 1, {4}, 1.0f), 0u);
  EXPECT_EQ(pulled(table, 4), 0.0f);
  EXPECT_EQ(table.counters().candidates, 1u);
  // The push that lets an id in is of zeros, and changes nothing.
  EXPECT_EQ(push(table, 1, {4}, 1.0f, 0, 1), 0u);
  EXPECT_EQ(table.counters().candidates, 0u);
  EXPECT_EQ(table.counters().rows, 1u);
  const float begun = pulled(table, 4);
  EXPECT_NE(begun, 0.0f);
  EXPECT_EQ(push(table, 1, {4}, 1.0f), 1u);
  EXPECT_EQ(pulled(table, 4), begun + 1.0f);
}

TEST(Table, ProbabilityLetsInItsPart) {
  tenon_table_options options = options_of(1);
  options.entry = TENON_TABLE_ENTRY_PROBABILITY;
  options.threshold = 0.25f;
  Table table(options);
  std::vector<int64_t> ids(4000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  push(table, 1, ids, 1.0f);
  EXPECT_NEAR(static_cast<double>(table.counters().rows), 1000, 120);
  EXPECT_EQ(table.counters().candidates, 0u);
}

TEST(Table, ShrinkRemovesWhatIsUnseenOrScoresLittle) {
  tenon_table_options options = options_of(1);
  options.decay = 0.5f;
  Table table(options);
  push(table, 1, {1}, 1.0f, 100);
  push(table, 1, {2}, 1.0f, 3);
  table.day_end();
  push(table, 1, {3}, 1.0f, 1);
  table.day_end();  // scores: 25, 0.75, 0.5
  EXPECT_EQ(table.shrink(7, 0.6f), 1u);
  EXPECT_EQ(table.shrink(1, 0.0f), 2u) << "unseen for two days";
  EXPECT_EQ(table.counters().rows, 0u);
  std::vector<uint64_t> removed;
  for (uint32_t part = 0; part < TENON_TABLE_PARTS; ++part)
    table.scan(
        part, 0,
        [](void* user, const tenon_table_row* row) {
          if (row->kind == TENON_TABLE_REMOVED)
            static_cast<std::vector<uint64_t>*>(user)->push_back(row->id);
          return 0;
        },
        &removed);
  EXPECT_EQ(removed.size(), 3u);
}

TEST(Table, ARemovedIdThatIsShownAgainIsACandidateAlone) {
  tenon_table_options options = options_of(1);
  options.entry = TENON_TABLE_ENTRY_SCORE;
  options.threshold = 10;
  Table table(options), other(options);
  push(table, 1, {5}, 1.0f);
  EXPECT_EQ(table.shrink(7, 2.0f), 1u);
  push(table, 1, {5}, 1.0f, 3);
  for (uint32_t part = 0; part < TENON_TABLE_PARTS; ++part)
    table.scan(
        part, 0,
        [](void* user, const tenon_table_row* row) {
          static_cast<Table*>(user)->restore(row, 1);
          return 0;
        },
        &other);
  EXPECT_EQ(other.counters().candidates, 1u);
  push(other, 1, {5}, 1.0f, 7);
  EXPECT_EQ(other.counters().rows, 1u) << "shown 3 and 7 times";
}

TEST(Table, RecordsOfAnOddWidthAreAligned) {
  Part part(3);
  for (uint64_t id = 0; id < 5; ++id)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part.insert(id, mix(id))) % alignof(Record), 0u);
}

TEST(Table, AnUnknownKindOfRowIsRefused) {
  Table table(options_of(1));
  tenon_table_row row = {};
  row.kind = 3;
  try {
    table.restore(&row, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a table: expected a row, a candidate or a removed id, got kind 3");
  }
}

TEST(Table, ScansSinceAPushAndRestoresElsewhere) {
  Table table(options_of(2, 1)), other(options_of(2, 1));
  push(table, 3, {1, 2, 3}, 1.0f);
  const uint64_t since = table.counters().version;
  push(table, 3, {2, 40}, 1.0f, 5, 2);
  std::vector<uint64_t> ids;
  std::pair<Table*, std::vector<uint64_t>*> both{&other, &ids};
  for (uint32_t part = 0; part < TENON_TABLE_PARTS; ++part)
    table.scan(
        part, since,
        [](void* user, const tenon_table_row* row) {
          auto& [into, seen] = *static_cast<std::pair<Table*, std::vector<uint64_t>*>*>(user);
          into->restore(row, 1);
          seen->push_back(row->id);
          return 0;
        },
        &both);
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(pulled(other, 2), pulled(table, 2));
  EXPECT_EQ(pulled(other, 40), pulled(table, 40));
  EXPECT_NE(pulled(other, 1), pulled(table, 1));
}

TEST(Table, ThreadsPullAndPushAtOnce) {
  Table table(options_of(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&table, t] {
      std::vector<int64_t> ids(500);
      std::vector<float> rows(ids.size() * 4);
      for (int step = 0; step < 20; ++step) {
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) + 500 * t + step;
        push(table, 4, ids, 1.0f);
        table.pull(ids.data(), ids.size(), rows.data());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.counters().rows, 2019u);
}

TEST(Merge, AddsInTheOrderOfBlocks) {
  const int64_t first[] = {7, 3, 7}, second[] = {3, 9};
  const float a[] = {1e8f, 1, 1}, b[] = {2, 5};
  const float shows[] = {4, 4};
  const tenon_table_block blocks[] = {{3, first, a, nullptr, nullptr},
                                      {2, second, b, shows, nullptr}};
  int64_t ids[5];
  float gradients[5], show[5], click[5];
  ASSERT_EQ(merge(blocks, 2, 1, 2, ids, gradients, show, click), 3u);
  EXPECT_EQ((std::vector<int64_t>{ids, ids + 3}), (std::vector<int64_t>{7, 3, 9}));
  EXPECT_EQ((std::vector<float>{gradients, gradients + 3}),
            (std::vector<float>{(1e8f + 1) / 2, 1.5f, 2.5f}));
  EXPECT_EQ((std::vector<float>{show, show + 3}), (std::vector<float>{2, 5, 4}));
}

TEST(Merge, DividesIdsByServerAndKeepsTheirOrder) {
  std::vector<int64_t> ids(1000), order(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 3);
  uint64_t counts[3];
  divide(ids.data(), ids.size(), 3, order.data(), counts);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 1000u);
  size_t at = 0;
  for (uint32_t server = 0; server < 3; ++server) {
    EXPECT_NEAR(static_cast<double>(counts[server]), 333, 70);
    for (uint64_t i = 0; i < counts[server]; ++i, ++at) {
      EXPECT_EQ(server_of(static_cast<uint64_t>(ids[static_cast<size_t>(order[at])]), 3), server);
      if (i) EXPECT_LT(order[at - 1], order[at]);
    }
  }
}

TEST(ColdRows, AreReadUpdatedRemovedAndScannedAsOthers) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tenon-cold-" + std::to_string(getpid()));
  tenon_table_options options = options_of(2);
  options.hot_rows = 64;
  options.cold_folder = folder.c_str();
  std::unique_ptr<Table> table;
  try {
    table = std::make_unique<Table>(options);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  Table all(options_of(2));
  for (int64_t step = 0; step < 40; ++step) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 50; ++i) ids.push_back((step * 37 + i * 11) % 700);
    push(*table, 2, ids, 1.0f);
    push(all, 2, ids, 1.0f);
  }
  EXPECT_LE(table->counters().rows, 64u * 2);
  EXPECT_EQ(table->counters().rows + table->counters().cold_rows, all.counters().rows);
  for (int64_t id = 0; id < 700; ++id) ASSERT_EQ(pulled(*table, id), pulled(all, id)) << id;
  uint64_t scanned = 0;
  for (uint32_t part = 0; part < TENON_TABLE_PARTS; ++part)
    table->scan(
        part, 0,
        [](void* user, const tenon_table_row*) { return ++*static_cast<uint64_t*>(user), 0; },
        &scanned);
  EXPECT_EQ(scanned, all.counters().rows);
  table->day_end();
  EXPECT_EQ(table->shrink(0, 0), scanned);
  EXPECT_EQ(table->counters().cold_rows, 0u);
  table.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::tables
