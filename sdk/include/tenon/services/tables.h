/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "tables", version 1: rows of float32 under ids of 64 bits, as servers of embeddings keep them
 * (docs/parameter_server.md). A row is its values (the embedding, then what an optimizer keeps for it) and how it was
 * used. How an update computes is the caller's affair: it reads the rows that a push concerns, and writes them back.
 *
 * Rows lie in 64 parts with a lock each. All functions may be called from any thread; pushes are made one at a time. */
#ifndef TENON_SERVICES_TABLES_H_
#define TENON_SERVICES_TABLES_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_TABLES_SERVICE "tables"
#define TENON_TABLES_VERSION 1u
#define TENON_TABLE_PARTS 64u

typedef struct tenon_table_s* tenon_table;

/* Which ids get a row when they are pushed. The others are candidates: how often they were shown and clicked is counted,
 * and they read as zeros. */
enum {
  TENON_TABLE_ENTRY_ALL = 0,         /* every id */
  TENON_TABLE_ENTRY_PROBABILITY = 1, /* at each push with probability `threshold`; no candidates */
  TENON_TABLE_ENTRY_SCORE = 2        /* show_weight * show + click_weight * click >= threshold */
};

typedef struct tenon_table_options {
  uint32_t struct_size;
  uint32_t dim;         /* of the embedding */
  uint32_t state_width; /* floats behind it */
  int32_t entry;        /* TENON_TABLE_ENTRY_* */
  uint64_t seed;        /* of what rows begin with, and of draws */
  float
      initial_range; /* embeddings begin uniform in [-initial_range, initial_range), by seed and id alone */
  float initial_state;
  float threshold;
  float show_weight;
  float click_weight;
  float decay;             /* of shows and clicks, at the end of each day */
  uint64_t hot_rows;       /* rows in memory at most; 0: all of them */
  const char* cold_folder; /* (optional) where RocksDB keeps the others; what is in it is deleted */
} tenon_table_options;

enum {
  TENON_TABLE_ROW = 0,
  TENON_TABLE_CANDIDATE = 1, /* `values` is NULL */
  TENON_TABLE_REMOVED = 2    /* only `id` and `version` count */
};
typedef struct tenon_table_row {
  uint64_t id;
  uint64_t version; /* number of the push that wrote it last */
  float show;
  float click;
  uint32_t day;  /* of the last push: unseen days are those since then */
  int32_t kind;  /* TENON_TABLE_ROW, ... */
  float* values; /* dim + state_width */
} tenon_table_row;
/* Other than 0 ends a scan. The row lives for the duration of the call, in which no function of the table is called. */
typedef int32_t (*tenon_table_row_fn)(void* user, const tenon_table_row* row);

/* What one worker pushed. */
typedef struct tenon_table_block {
  uint64_t count;
  const int64_t* ids;
  const float* gradients; /* count * dim */
  const float* shows;     /* (optional) absent: 1 each */
  const float* clicks;    /* (optional) absent: 0 each */
} tenon_table_block;

typedef struct tenon_table_counters {
  uint64_t rows; /* in memory */
  uint64_t cold_rows;
  uint64_t candidates;
  uint64_t bytes; /* of memory that rows take */
  uint64_t version;
  uint64_t day;
} tenon_table_counters;

typedef struct tenon_tables_api {
  uint32_t struct_size;
  uint32_t version;

  tenon_status (*create)(const tenon_table_options*, tenon_table* out, tenon_err*);
  void (*destroy)(tenon_table);

  /* `rows` receives count * dim floats. An id without a row reads as what its row would begin with if every id gets one,
   * and as zeros otherwise. Changes nothing. */
  tenon_status (*pull)(tenon_table, const int64_t* ids, uint64_t count, float* rows, tenon_err*);

  /* Sums by id, over blocks in their order and within a block in its order, divided by `divisor`. Receive up to as many
   * elements as all blocks have, and `*count` how many there are. No table is needed. */
  tenon_status (*merge)(const tenon_table_block* blocks, uint32_t block_count, uint32_t dim,
                        float divisor, int64_t* ids, float* gradients, float* shows, float* clicks,
                        uint64_t* count, tenon_err*);
  /* Begin a push of ids of which none occurs twice: counts shows and clicks, and lets candidates in. `indices` receives
   * the indices of ids whose rows are to be updated: those that had one before, and all where every id gets one. `values`
   * receives dim + state_width floats of each, and `*rows` how many there are. */
  tenon_status (*push_begin)(tenon_table, const int64_t* ids, const float* shows,
                             const float* clicks, uint64_t count, int64_t* indices, float* values,
                             uint64_t* rows, tenon_err*);
  /* End it: the rows' new values. */
  tenon_status (*push_end)(tenon_table, const int64_t* ids, const float* values, uint64_t count,
                           tenon_err*);
  /* Write embeddings, and leave the rest of each row; ids without a row get one. */
  tenon_status (*assign)(tenon_table, const int64_t* ids, const float* rows, uint64_t count,
                         tenon_err*);
  /* 1 where the id has a row. */
  tenon_status (*contains)(tenon_table, const int64_t* ids, uint64_t count, uint8_t* out,
                           tenon_err*);

  void (*day_end)(tenon_table);
  /* Remove rows and candidates that were not seen for more than `unseen_days`, or whose score is below `score`. */
  tenon_status (*shrink)(tenon_table, uint32_t unseen_days, float score, uint64_t* removed,
                         tenon_err*);

  /* Rows, candidates and removed ids of a part that pushes with a number above `since` changed. */
  tenon_status (*scan)(tenon_table, uint32_t part, uint64_t since, tenon_table_row_fn, void* user,
                       tenon_err*);
  /* Put rows as a scan gave them. TENON_INVALID_ARGUMENT: a kind that is none. */
  tenon_status (*restore)(tenon_table, const tenon_table_row* rows, uint64_t count, tenon_err*);
  /* The numbers that the next push and today have, after rows were restored. */
  void (*set_version)(tenon_table, uint64_t version, uint64_t day);
  void (*counters)(tenon_table, tenon_table_counters* out);

  /* `order` receives indices of ids, grouped by the server that an id belongs to and otherwise in their order, and
   * `counts` how many there are of each. */
  void (*divide)(const int64_t* ids, uint64_t count, uint32_t servers, int64_t* order,
                 uint64_t* counts);
} tenon_tables_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_TABLES_H_ */
