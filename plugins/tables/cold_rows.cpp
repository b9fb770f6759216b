// SPDX-License-Identifier: Apache-2.0
#include "cold_rows.hpp"

#include <array>
#include <cstring>
#include <tenon/error.hpp>
#include <tenon/shared_libraries.hpp>

#include "hash.hpp"

namespace tenon::tables {
namespace {

// What is used of RocksDB's C interface; its types are opaque to us.
struct RocksDb {
  void* (*options_create)();
  void (*options_destroy)(void*);
  void (*options_set_create_if_missing)(void*, unsigned char);
  void (*destroy_db)(const void*, const char*, char**);
  void* (*open)(const void*, const char*, char**);
  void (*close)(void*);
  void* (*writeoptions_create)();
  void (*writeoptions_disable_wal)(void*, int);
  void (*writeoptions_destroy)(void*);
  void* (*readoptions_create)();
  void (*readoptions_destroy)(void*);
  void (*put)(void*, const void*, const char*, size_t, const char*, size_t, char**);
  char* (*get)(void*, const void*, const char*, size_t, size_t*, char**);
  void (*delete_key)(void*, const void*, const char*, size_t, char**);
  void* (*create_iterator)(void*, const void*);
  void (*iter_destroy)(void*);
  void (*iter_seek)(void*, const char*, size_t);
  unsigned char (*iter_valid)(const void*);
  void (*iter_next)(void*);
  void (*iter_get_error)(const void*, char**);
  const char* (*iter_key)(const void*, size_t*);
  const char* (*iter_value)(const void*, size_t*);
  void (*free)(void*);
};
constexpr const char* kNames[] = {"rocksdb_options_create",
                                  "rocksdb_options_destroy",
                                  "rocksdb_options_set_create_if_missing",
                                  "rocksdb_destroy_db",
                                  "rocksdb_open",
                                  "rocksdb_close",
                                  "rocksdb_writeoptions_create",
                                  "rocksdb_writeoptions_disable_WAL",
                                  "rocksdb_writeoptions_destroy",
                                  "rocksdb_readoptions_create",
                                  "rocksdb_readoptions_destroy",
                                  "rocksdb_put",
                                  "rocksdb_get",
                                  "rocksdb_delete",
                                  "rocksdb_create_iterator",
                                  "rocksdb_iter_destroy",
                                  "rocksdb_iter_seek",
                                  "rocksdb_iter_valid",
                                  "rocksdb_iter_next",
                                  "rocksdb_iter_get_error",
                                  "rocksdb_iter_key",
                                  "rocksdb_iter_value",
                                  "rocksdb_free"};
static_assert(sizeof(RocksDb) == sizeof kNames);

const RocksDb& library() {
  static RocksDb functions;
  static const std::string problem = [] {
    std::string text;
    const std::string named = environment_text("TENON_ROCKSDB");
    void* opened = named.empty() ? open_first_library({"librocksdb.so.7.8", "librocksdb.so.8.9",
                                                       "librocksdb.so.9.10", "librocksdb.so"},
                                                      &text)
                                 : open_shared_library(named, &text);
    if (!opened) return text;
    void** slot = reinterpret_cast<void**>(&functions);
    for (const char* name : kNames)
      if (!(*slot++ = ::dlsym(opened, name))) return std::string("it has no ") + name;
    return std::string();
  }();
  if (!problem.empty())
    throw Error(
        TENON_UNAVAILABLE,
        "a table with cold rows needs RocksDB's library (Debian: apt-get install librocksdb7.8; "
        "or its path in the variable TENON_ROCKSDB): " +
            problem);
  return functions;
}

// RocksDB says errors as texts that the caller frees.
class Problem {
 public:
  explicit Problem(const char* what) : what_(what) {}
  ~Problem() { library().free(text_); }
  Problem(const Problem&) = delete;
  operator char**() { return &text_; }
  void check() const {
    if (text_) throw Error(TENON_UNKNOWN, std::string("RocksDB: ") + what_ + ": " + text_);
  }

 private:
  const char* what_;
  char* text_ = nullptr;
};

// Keys begin with the part, so that those of a part follow each other.
std::array<char, 9> key_of(uint64_t id) {
  std::array<char, 9> key;
  key[0] = static_cast<char>(part_of(mix(id)));
  for (int byte = 0; byte < 8; ++byte)
    key[1 + byte] = static_cast<char>(id >> (56 - 8 * byte) & 0xff);
  return key;
}

class InRocksDb final : public ColdRows {
 public:
  explicit InRocksDb(const std::string& folder) : api_(library()) {
    options_ = api_.options_create();
    api_.options_set_create_if_missing(options_, 1);
    write_ = api_.writeoptions_create();
    api_.writeoptions_disable_wal(write_, 1);  // a table that is made anew begins with none
    read_ = api_.readoptions_create();
    try {
      Problem old("deleting what was in the folder");
      api_.destroy_db(options_, folder.c_str(), old);
      old.check();
      Problem problem("opening the folder");
      database_ = api_.open(options_, folder.c_str(), problem);
      problem.check();
    } catch (...) {
      free_options();
      throw;
    }
  }
  ~InRocksDb() override {
    api_.close(database_);
    free_options();
  }

  bool read(uint64_t id, std::vector<std::byte>& bytes) override {
    const auto key = key_of(id);
    Problem problem("reading a row");
    size_t size = 0;
    char* value = api_.get(database_, read_, key.data(), key.size(), &size, problem);
    problem.check();
    if (!value) return false;
    bytes.assign(reinterpret_cast<std::byte*>(value), reinterpret_cast<std::byte*>(value) + size);
    api_.free(value);
    return true;
  }
  void write(const Record& record, size_t bytes) override {
    const auto key = key_of(record.id);
    Problem problem("writing a row");
    api_.put(database_, write_, key.data(), key.size(), reinterpret_cast<const char*>(&record),
             bytes, problem);
    problem.check();
  }
  void erase(uint64_t id) override {
    const auto key = key_of(id);
    Problem problem("deleting a row");
    api_.delete_key(database_, write_, key.data(), key.size(), problem);
    problem.check();
  }
  void each(uint32_t part, const std::function<void(const Record&)>& function) override {
    const char first = static_cast<char>(part);
    const std::unique_ptr<void, void (*)(void*)> owner(api_.create_iterator(database_, read_),
                                                       api_.iter_destroy);
    void* iterator = owner.get();
    std::vector<uint64_t> aligned;  // records hold numbers of eight bytes
    for (api_.iter_seek(iterator, &first, 1); api_.iter_valid(iterator); api_.iter_next(iterator)) {
      size_t size = 0;
      if (*api_.iter_key(iterator, &size) != first) break;
      const char* value = api_.iter_value(iterator, &size);
      aligned.resize((size + 7) / 8);
      memcpy(aligned.data(), value, size);
      function(*reinterpret_cast<const Record*>(aligned.data()));
    }
    // It ends at what cannot be read, too.
    Problem problem("reading all rows of a part");
    api_.iter_get_error(iterator, problem);
    problem.check();
  }

 private:
  void free_options() {
    api_.readoptions_destroy(read_);
    api_.writeoptions_destroy(write_);
    api_.options_destroy(options_);
  }

  const RocksDb& api_;
  void* options_ = nullptr;
  void* write_ = nullptr;
  void* read_ = nullptr;
  void* database_ = nullptr;
};

}  // namespace

std::unique_ptr<ColdRows> open_cold_rows(const std::string& folder) {
  return std::make_unique<InRocksDb>(folder);
}

}  // namespace tenon::tables
