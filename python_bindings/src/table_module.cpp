// SPDX-License-Identifier: Apache-2.0
// The compiled half of tenon.distributed.ps: tables of rows, and what prepares ids and gradients for them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/services/tables.h>

#include <optional>
#include <string>
#include <vector>

#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

const tenon_tables_api& tables() {
  need_plugins();
  const void* service = host->service_find(TENON_TABLES_SERVICE, TENON_TABLES_VERSION);
  if (!service) {
    raise_error(
        PyExc_RuntimeError,
        "this needs the tables plugin, which is not loaded; tenon.plugins.doctor() says why");
    throw nb::python_error();
  }
  return *static_cast<const tenon_tables_api*>(service);
}

// The package has seen to what users give; what would touch wrong memory is looked at here.
template <class T>
T* elements(nb::handle object, int32_t dtype, uint64_t count, const char* what) {
  tenon_tensor* tensor = tensor_argument(object, "Table");
  const bool fits = tensor->device == host->device_host() && tensor->dtype == dtype &&
                    (tensor->flags & TENON_TENSOR_CONTIGUOUS) &&
                    static_cast<uint64_t>(tensor->numel) == count;
  if (!fits) {
    raise_error(PyExc_ValueError,
                "Table: expected %s as %llu contiguous elements of %s in the host's memory", what,
                static_cast<unsigned long long>(count), host->dtype_name(dtype));
    throw nb::python_error();
  }
  return static_cast<T*>(tensor->data);
}
float* floats(nb::handle object, uint64_t count, const char* what) {
  return elements<float>(object, TENON_DTYPE_F32, count, what);
}
int64_t* integers(nb::handle object, uint64_t count, const char* what) {
  return elements<int64_t>(object, TENON_DTYPE_I64, count, what);
}
uint64_t count_of(nb::handle object) {
  return static_cast<uint64_t>(tensor_argument(object, "Table")->numel);
}
void bump(std::initializer_list<nb::handle> written) {
  for (nb::handle object : written) host->tensor_bump_version(tensor_argument(object, "Table"));
}

class Table {
 public:
  Table(uint32_t dim, uint32_t state_width, int32_t entry, uint64_t seed, float initial_range,
        float initial_state, float threshold, float show_weight, float click_weight, float decay,
        uint64_t hot_rows, std::optional<std::string> cold_folder)
      : api_(tables()), dim_(dim), width_(dim + state_width) {
    tenon_table_options options = {};
    options.struct_size = sizeof options;
    options.dim = dim;
    options.state_width = state_width;
    options.entry = entry;
    options.seed = seed;
    options.initial_range = initial_range;
    options.initial_state = initial_state;
    options.threshold = threshold;
    options.show_weight = show_weight;
    options.click_weight = click_weight;
    options.decay = decay;
    options.hot_rows = hot_rows;
    options.cold_folder = cold_folder ? cold_folder->c_str() : nullptr;
    call_unlocked([&](tenon_err* err) { return api_.create(&options, &table_, err); });
  }
  ~Table() {
    nb::gil_scoped_release unlocked;
    if (table_) api_.destroy(table_);
  }
  Table(const Table&) = delete;

  void pull(nb::handle ids, nb::handle rows) {
    const uint64_t count = count_of(ids);
    const int64_t* from = integers(ids, count, "ids");
    float* to = floats(rows, count * dim_, "rows");
    call_unlocked([&](tenon_err* err) { return api_.pull(table_, from, count, to, err); });
    bump({rows});
  }
  uint64_t push_begin(nb::handle ids, nb::handle shows, nb::handle clicks, nb::handle indices,
                      nb::handle values) {
    const uint64_t count = count_of(ids);
    const int64_t* from = integers(ids, count, "ids");
    const float* show = floats(shows, count, "shows");
    const float* click = floats(clicks, count, "clicks");
    int64_t* index = integers(indices, count, "indices");
    float* to = floats(values, count * width_, "values");
    uint64_t rows = 0;
    call_unlocked([&](tenon_err* err) {
      return api_.push_begin(table_, from, show, click, count, index, to, &rows, err);
    });
    bump({indices, values});
    return rows;
  }
  void push_end(nb::handle ids, nb::handle values) {
    const uint64_t count = count_of(ids);
    const int64_t* to = integers(ids, count, "ids");
    const float* from = floats(values, count * width_, "values");
    call_unlocked([&](tenon_err* err) { return api_.push_end(table_, to, from, count, err); });
  }
  void assign(nb::handle ids, nb::handle rows) {
    const uint64_t count = count_of(ids);
    const int64_t* to = integers(ids, count, "ids");
    const float* from = floats(rows, count * dim_, "rows");
    call_unlocked([&](tenon_err* err) { return api_.assign(table_, to, from, count, err); });
  }
  void contains(nb::handle ids, nb::handle out) {
    const uint64_t count = count_of(ids);
    const int64_t* from = integers(ids, count, "ids");
    auto* to = elements<uint8_t>(out, TENON_DTYPE_BOOL, count, "the result");
    call_unlocked([&](tenon_err* err) { return api_.contains(table_, from, count, to, err); });
    bump({out});
  }
  void day_end() { api_.day_end(table_); }
  uint64_t shrink(uint32_t unseen_days, float score) {
    uint64_t removed = 0;
    call_unlocked(
        [&](tenon_err* err) { return api_.shrink(table_, unseen_days, score, &removed, err); });
    return removed;
  }

  // (rows, candidates, removed ids) of a part that changed since.
  nb::tuple scan_counts(uint32_t part, uint64_t since) {
    uint64_t counts[3] = {};
    call_unlocked([&](tenon_err* err) {
      return api_.scan(
          table_, part, since,
          [](void* user, const tenon_table_row* row) -> int32_t {
            ++static_cast<uint64_t*>(user)[row->kind];
            return 0;
          },
          counts, err);
    });
    return nb::make_tuple(counts[0], counts[1], counts[2]);
  }
  // The same: rows first, then candidates, then removed ids. No push is made between the two calls.
  void scan(uint32_t part, uint64_t since, nb::handle ids, nb::handle versions, nb::handle uses,
            nb::handle days, nb::handle values) {
    Copy copy;
    copy.width = width_;
    copy.count = count_of(ids);
    copy.value_count = count_of(values) / width_;
    copy.ids = integers(ids, copy.count, "ids");
    copy.versions = integers(versions, copy.count, "versions");
    copy.uses = floats(uses, 2 * copy.count, "uses");
    copy.days = integers(days, copy.count, "days");
    copy.values = floats(values, copy.value_count * width_, "values");
    call_unlocked(
        [&](tenon_err* err) { return api_.scan(table_, part, since, Copy::take_row, &copy, err); });
    if (copy.at != copy.count || copy.is_full)
      throw nb::value_error("Table: a part has changed between the two calls of a scan");
    bump({ids, versions, uses, days, values});
  }
  // Rows as scan() gave them; `kind` is TENON_TABLE_*, and values are None but for rows.
  void restore(int32_t kind, nb::handle ids, nb::handle versions, nb::handle uses, nb::handle days,
               nb::handle values) {
    const uint64_t count = count_of(ids);
    const int64_t* id = integers(ids, count, "ids");
    const int64_t* version = integers(versions, count, "versions");
    const float* use = floats(uses, 2 * count, "uses");
    const int64_t* day = integers(days, count, "days");
    float* value = kind == TENON_TABLE_ROW ? floats(values, count * width_, "values") : nullptr;
    std::vector<tenon_table_row> rows(count);
    for (uint64_t i = 0; i < count; ++i)
      rows[i] = {static_cast<uint64_t>(id[i]),
                 static_cast<uint64_t>(version[i]),
                 use[2 * i],
                 use[2 * i + 1],
                 static_cast<uint32_t>(day[i]),
                 kind,
                 value ? value + i * width_ : nullptr};
    call_unlocked([&](tenon_err* err) { return api_.restore(table_, rows.data(), count, err); });
  }
  void set_version(uint64_t version, uint64_t day) { api_.set_version(table_, version, day); }
  nb::dict counters() {
    tenon_table_counters counters;
    {
      nb::gil_scoped_release unlocked;
      api_.counters(table_, &counters);
    }
    nb::dict dict;
    dict["rows"] = counters.rows;
    dict["cold_rows"] = counters.cold_rows;
    dict["candidates"] = counters.candidates;
    dict["bytes"] = counters.bytes;
    dict["version"] = counters.version;
    dict["day"] = counters.day;
    return dict;
  }

 private:
  // Where a scan puts rows.
  struct Copy {
    static int32_t take_row(void* user, const tenon_table_row* row) {
      return static_cast<Copy*>(user)->take(*row);
    }
    int32_t take(const tenon_table_row& row) {
      is_full = at == count || (row.values && at == value_count);
      if (is_full) return 1;
      ids[at] = static_cast<int64_t>(row.id);
      versions[at] = static_cast<int64_t>(row.version);
      uses[2 * at] = row.show;
      uses[2 * at + 1] = row.click;
      days[at] = row.day;
      if (row.values) std::copy_n(row.values, width, values + at * width);
      ++at;
      return 0;
    }
    uint64_t width, count, value_count, at = 0;
    int64_t *ids, *versions, *days;
    float *uses, *values;
    bool is_full = false;
  };

  const tenon_tables_api& api_;
  tenon_table table_ = nullptr;
  uint64_t dim_, width_;
};

// Blocks are tuples (ids, gradients, shows or None, clicks or None). Returns how many ids there are.
uint64_t merge(nb::list blocks, uint32_t dim, float divisor, nb::handle ids, nb::handle gradients,
               nb::handle shows, nb::handle clicks) {
  std::vector<tenon_table_block> all;
  uint64_t total = 0;
  for (nb::handle block : blocks) {
    const auto at = [&](int index) { return nb::object(block[index]); };
    tenon_table_block made = {};
    made.count = count_of(at(0));
    made.ids = integers(at(0), made.count, "ids");
    made.gradients = floats(at(1), made.count * dim, "gradients");
    if (!at(2).is_none()) made.shows = floats(at(2), made.count, "shows");
    if (!at(3).is_none()) made.clicks = floats(at(3), made.count, "clicks");
    total += made.count;
    all.push_back(made);
  }
  int64_t* id = integers(ids, total, "ids");
  float* gradient = floats(gradients, total * dim, "gradients");
  float* show = floats(shows, total, "shows");
  float* click = floats(clicks, total, "clicks");
  uint64_t count = 0;
  const tenon_tables_api& api = tables();
  call_unlocked([&](tenon_err* err) {
    return api.merge(all.data(), static_cast<uint32_t>(all.size()), dim, divisor, id, gradient,
                     show, click, &count, err);
  });
  bump({ids, gradients, shows, clicks});
  return count;
}

// Fills `order` with indices of ids by server; returns how many each has.
std::vector<uint64_t> divide(nb::handle ids, uint32_t servers, nb::handle order) {
  if (servers == 0) throw nb::value_error("Table: expected one server or more");
  const uint64_t count = count_of(ids);
  const int64_t* from = integers(ids, count, "ids");
  int64_t* to = integers(order, count, "the order");
  std::vector<uint64_t> counts(servers);
  const tenon_tables_api& api = tables();
  {
    nb::gil_scoped_release unlocked;
    api.divide(from, count, servers, to, counts.data());
  }
  bump({order});
  return counts;
}

}  // namespace

void add_table_type(nb::module_& module) {
  nb::class_<Table>(module, "Table")
      .def(nb::init<uint32_t, uint32_t, int32_t, uint64_t, float, float, float, float, float, float,
                    uint64_t, std::optional<std::string>>(),
           nb::arg("dim"), nb::arg("state_width"), nb::arg("entry"), nb::arg("seed"),
           nb::arg("initial_range"), nb::arg("initial_state"), nb::arg("threshold"),
           nb::arg("show_weight"), nb::arg("click_weight"), nb::arg("decay"), nb::arg("hot_rows"),
           nb::arg("cold_folder").none())
      .def("pull", &Table::pull)
      .def("push_begin", &Table::push_begin)
      .def("push_end", &Table::push_end)
      .def("assign", &Table::assign)
      .def("contains", &Table::contains)
      .def("day_end", &Table::day_end)
      .def("shrink", &Table::shrink)
      .def("scan_counts", &Table::scan_counts)
      .def("scan", &Table::scan)
      .def("restore", &Table::restore, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
           nb::arg().none())
      .def("set_version", &Table::set_version)
      .def("counters", &Table::counters);
  module.def("_merge_gradients", &merge);
  module.def("_divide_ids", &divide);
}

}  // namespace tenon::python
