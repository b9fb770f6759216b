// SPDX-License-Identifier: Apache-2.0
// The plugin: one service.
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include "merge.hpp"
#include "table.hpp"

struct tenon_table_s {
  tenon::tables::Table table;
};

namespace tenon::tables {
namespace {

tenon_status create(const tenon_table_options* options, tenon_table* out, tenon_err* err) {
  return guarded(err, [&] {
    if (!options || options->struct_size < sizeof *options)
      throw Error(TENON_INVALID_ARGUMENT, "a table: expected options with struct_size");
    *out = new tenon_table_s{Table(*options)};
  });
}
void destroy(tenon_table table) { delete table; }

tenon_status pull(tenon_table table, const int64_t* ids, uint64_t count, float* rows,
                  tenon_err* err) {
  return guarded(err, [&] { table->table.pull(ids, count, rows); });
}
tenon_status merge_blocks(const tenon_table_block* blocks, uint32_t block_count, uint32_t dim,
                          float divisor, int64_t* ids, float* gradients, float* shows,
                          float* clicks, uint64_t* count, tenon_err* err) {
  return guarded(err, [&] {
    *count = merge(blocks, block_count, dim, divisor, ids, gradients, shows, clicks);
  });
}
tenon_status push_begin(tenon_table table, const int64_t* ids, const float* shows,
                        const float* clicks, uint64_t count, int64_t* indices, float* values,
                        uint64_t* rows, tenon_err* err) {
  return guarded(
      err, [&] { *rows = table->table.push_begin(ids, shows, clicks, count, indices, values); });
}
tenon_status push_end(tenon_table table, const int64_t* ids, const float* values, uint64_t count,
                      tenon_err* err) {
  return guarded(err, [&] { table->table.push_end(ids, values, count); });
}
tenon_status assign(tenon_table table, const int64_t* ids, const float* rows, uint64_t count,
                    tenon_err* err) {
  return guarded(err, [&] { table->table.assign(ids, rows, count); });
}
tenon_status contains(tenon_table table, const int64_t* ids, uint64_t count, uint8_t* out,
                      tenon_err* err) {
  return guarded(err, [&] { table->table.contains(ids, count, out); });
}
void day_end(tenon_table table) { table->table.day_end(); }
tenon_status shrink(tenon_table table, uint32_t unseen_days, float score, uint64_t* removed,
                    tenon_err* err) {
  return guarded(err, [&] { *removed = table->table.shrink(unseen_days, score); });
}
tenon_status scan(tenon_table table, uint32_t part, uint64_t since, tenon_table_row_fn function,
                  void* user, tenon_err* err) {
  return guarded(err, [&] { table->table.scan(part, since, function, user); });
}
tenon_status restore(tenon_table table, const tenon_table_row* rows, uint64_t count,
                     tenon_err* err) {
  return guarded(err, [&] { table->table.restore(rows, count); });
}
void set_version(tenon_table table, uint64_t version, uint64_t day) {
  table->table.set_version(version, day);
}
void counters(tenon_table table, tenon_table_counters* out) { *out = table->table.counters(); }

constexpr tenon_tables_api kService = {
    .struct_size = sizeof(tenon_tables_api),
    .version = TENON_TABLES_VERSION,
    .create = create,
    .destroy = destroy,
    .pull = pull,
    .merge = merge_blocks,
    .push_begin = push_begin,
    .push_end = push_end,
    .assign = assign,
    .contains = contains,
    .day_end = day_end,
    .shrink = shrink,
    .scan = scan,
    .restore = restore,
    .set_version = set_version,
    .counters = counters,
    .divide = divide,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_TABLES_SERVICE, TENON_TABLES_VERSION, &kService, err);
}

// `stop` is absent: tables may live until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "tables",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::tables

TENON_PLUGIN(tenon::tables::kPlugin)
