// SPDX-License-Identifier: Apache-2.0
// Calls in random orders, with right and wrong arguments: each ends with a status and a text, and what succeeds is right.
#include <cstring>
#include <random>

#include "support.hpp"

namespace tenon::test {
namespace {

constexpr int kCalls = 100000;

// What a predictor is known to have.
struct Known {
  tenon_predictor* handle = nullptr;
  bool is_alive = false;
  int64_t bound = 0;         // rows of the input; 0: none
  int64_t bound_output = 0;  // rows of the output's memory; 0: none
  int64_t made = 0;          // rows of the last run that succeeded; 0: none
};

class Orders {
 public:
  Orders() : x_(17 * 8, 0.5f), scores_(17 * 3) {
    const Handle predictor("classifier");
    EXPECT_EQ(bind(predictor, "x", {1, 8}, x_), TENON_OK);
    EXPECT_EQ(tenon_predictor_run(predictor), TENON_OK);
    expected_ = output(predictor, "scores");
  }
  ~Orders() {
    for (Known& each : all_)
      if (each.is_alive) tenon_predictor_free(each.handle);
    for (tenon_config* config : configs_) tenon_config_free(config);
  }

  void call() {
    const int64_t choice = draw(20);
    if (choice == 0) return create();
    if (choice == 1) return clone();
    if (choice == 2) return free();
    if (choice == 3) return use_config();
    if (choice < 8) return bind_input();
    if (choice < 10) return bind_output();
    if (choice < 13) return run();
    if (choice < 15) return read();
    return others(choice);
  }
  int succeeded() const { return succeeded_; }
  int failed() const { return failed_; }

 private:
  int64_t draw(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  // A predictor that lives, one that was freed, NULL or nonsense.
  Known* pick() {
    static Known none;
    const int64_t choice = draw(12);
    none = {};
    if (choice == 0 || all_.empty()) return &none;
    if (choice == 1) none.handle = reinterpret_cast<tenon_predictor*>(random_());
    return choice == 1 ? &none
                       : &all_[static_cast<size_t>(draw(static_cast<int64_t>(all_.size())))];
  }
  void expect(tenon_status status, bool succeeds) {
    EXPECT_EQ(status == TENON_OK, succeeds)
        << tenon_predictor_status_name(status) << ": " << tenon_predictor_error();
    if (status != TENON_OK) {
      EXPECT_GT(std::strlen(tenon_predictor_error()), 5u);
    }
    ++(status == TENON_OK ? succeeded_ : failed_);
  }

  void create() {
    if (all_.size() > 40) drop(10);
    tenon_predictor* made = nullptr;
    tenon_config* config = nullptr;
    const bool is_there = draw(4) > 0;
    expect(tenon_config_create(model(is_there ? "classifier" : "nothing").c_str(), &config), true);
    if (draw(2)) expect(tenon_config_set(config, "threads", draw(2) ? "2" : "1"), true);
    const bool is_alone = draw(16) == 0;  // without `threads`, or with a pool
    const char* threads = nullptr;
    expect(tenon_config_get(config, "threads", &threads), true);
    if (is_alone) expect(tenon_config_set(config, "spin_us", "20"), true);
    expect(tenon_predictor_create(config, &made), is_there && (!is_alone || *threads));
    expect(tenon_config_free(config), true);
    if (made) all_.push_back({made, true});
  }
  void drop(std::ptrdiff_t count) {
    for (auto each = all_.begin(); each != all_.begin() + count; ++each)
      if (each->is_alive) expect(tenon_predictor_free(each->handle), true);
    all_.erase(all_.begin(), all_.begin() + count);
  }
  void clone() {
    const Known& from = *pick();
    tenon_predictor* made = nullptr;
    expect(tenon_predictor_clone(from.handle, &made), from.is_alive);
    if (made) all_.push_back({made, true});
  }
  void free() {
    Known& each = *pick();
    expect(tenon_predictor_free(each.handle), each.is_alive);
    each.is_alive = false;
  }
  void use_config() {
    tenon_config* config = nullptr;
    if (configs_.size() < 8 && draw(2)) {
      expect(tenon_config_create("x", &config), true);
      configs_.push_back(config);
      return;
    }
    if (configs_.empty()) return;
    const auto index = static_cast<size_t>(draw(static_cast<int64_t>(configs_.size())));
    config = configs_[index];
    const char* value = nullptr;
    expect(tenon_config_set(config, "profile", "true"), true);
    expect(tenon_config_set(config, "profile", "perhaps"), false);
    expect(tenon_config_set(config, "nonsense", "true"), false);
    expect(tenon_config_get(config, "profile", &value), true);
    if (draw(3)) return;
    expect(tenon_config_free(config), true);
    expect(tenon_config_get(config, "profile", &value), false);
    configs_.erase(configs_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void bind_input() {
    Known& each = *pick();
    const int64_t rows = draw(19) - 1, columns = draw(8) ? 8 : draw(12);
    const int32_t dtype = draw(10) ? int32_t{TENON_DTYPE_F32} : static_cast<int32_t>(draw(40)) - 5;
    const int32_t ndim = draw(10) ? 2 : static_cast<int32_t>(draw(40)) - 3;
    const uint64_t bytes = draw(10) ? sizeof(float) * x_.size() : static_cast<uint64_t>(draw(600));
    int64_t shape[40] = {rows, columns};
    const bool fits = rows >= 1 && rows <= 16 && columns == 8 && dtype == TENON_DTYPE_F32 &&
                      ndim == 2 && bytes >= static_cast<uint64_t>(rows) * 32;
    const bool has_name = draw(12) > 0;
    const tenon_status status = tenon_predictor_bind_input(each.handle,
                                                           has_name  ? "x"
                                                           : draw(2) ? "y"
                                                                     : nullptr,
                                                           dtype, ndim, shape, x_.data(), bytes);
    expect(status, each.is_alive && has_name && fits);
    if (status == TENON_OK) each.bound = rows, each.made = 0;
  }
  void bind_output() {
    Known& each = *pick();
    const int64_t rows = draw(16) + 1;
    const int64_t shape[] = {rows, 3};
    const bool has_room = draw(4) > 0;
    const tenon_status status = tenon_predictor_bind_output(
        each.handle, "scores", TENON_DTYPE_F32, 2, shape, scores_.data(),
        static_cast<uint64_t>(rows) * 12 - (has_room ? 0 : 1));
    expect(status, each.is_alive && has_room);
    if (status == TENON_OK) each.bound_output = rows, each.made = 0;
  }
  void run() {
    Known& each = *pick();
    const bool fits =
        each.is_alive && each.bound && (!each.bound_output || each.bound_output == each.bound);
    expect(tenon_predictor_run(each.handle), fits);
    if (fits)
      each.made = each.bound;
    else if (each.bound)  // a run that began and failed leaves nothing
      each.made = 0;
  }
  void read() {
    Known& each = *pick();
    tenon_predictor_view view = empty_view();
    const tenon_status status = tenon_predictor_output(each.handle, "scores", &view);
    expect(status, each.is_alive && each.made);
    if (status != TENON_OK) return;
    ASSERT_EQ(view.shape[0], each.made);
    for (int i = 0; i < 3; ++i)
      ASSERT_NEAR(static_cast<const float*>(view.data)[i], expected_[static_cast<size_t>(i)], 1e-5);
  }
  void others(int64_t choice) {
    Known& each = *pick();
    const char* text = nullptr;
    uint32_t count = 0;
    if (choice == 15) {
      expect(tenon_predictor_explain(each.handle, &text), each.is_alive);
      expect(tenon_predictor_profile(each.handle, &text), false);
    } else if (choice == 16) {
      expect(tenon_predictor_unbind_inputs(each.handle), each.is_alive);
      each.bound = each.made = 0;
    } else if (choice == 17) {
      expect(tenon_predictor_unbind_outputs(each.handle), each.is_alive);
      each.bound_output = each.made = 0;
    } else if (choice == 18) {
      expect(tenon_predictor_cancel(each.handle), each.is_alive);
      expect(tenon_predictor_input_count(each.handle, &count), each.is_alive);
      expect(tenon_predictor_input_count(each.handle, nullptr), false);
      expect(tenon_predictor_output_name(each.handle, static_cast<uint32_t>(draw(2)), &text),
             each.is_alive);
    } else {
      expect(tenon_predictor_warmup(each.handle, draw(2) ? "recorded" : "x=2x8"), each.is_alive);
      expect(tenon_predictor_warmup(each.handle, "x=2x9"), false);
    }
  }

  std::mt19937_64 random_{20251129};
  std::vector<float> x_, scores_, expected_;
  std::vector<Known> all_;
  std::vector<tenon_config*> configs_;
  int succeeded_ = 0, failed_ = 0;
};

TEST(PredictorOrders, EndWithAStatusAndAText) {
  Orders orders;
  for (int i = 0; i < kCalls && !testing::Test::HasFailure(); ++i) orders.call();
  // Neither side is rare.
  EXPECT_GT(orders.succeeded(), kCalls / 4);
  EXPECT_GT(orders.failed(), kCalls / 4);
}

}  // namespace
}  // namespace tenon::test
