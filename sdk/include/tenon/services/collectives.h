/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "collectives", version 1: ranks that meet at a store, groups of them, and what they say to each other about
 * host memory (docs/distributed.md). Devices that communicate by themselves have the groups `collective` and `exchange`.
 *
 * Ranks may be processes of one machine (shared memory), of several (TCP), or threads. Nothing is encrypted: trusted
 * networks only. */
#ifndef TENON_SERVICES_COLLECTIVES_H_
#define TENON_SERVICES_COLLECTIVES_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_COLLECTIVES_SERVICE "collectives"
#define TENON_COLLECTIVES_VERSION 1u

/* ==== Stores: small values under names, where ranks meet ======================================== */

typedef struct tenon_store_s* tenon_store;
typedef struct tenon_store_server_s* tenon_store_server;

enum {
  TENON_STORE_LOCAL = 0, /* of this process; its threads share the handle */
  TENON_STORE_FILE = 1,  /* `where` is a folder that only this user may enter */
  TENON_STORE_TCP = 2    /* `where` and `port` name a server; it asks for the secret */
};
typedef struct tenon_store_options {
  uint32_t struct_size;
  int32_t kind; /* TENON_STORE_* */
  const char* where;
  uint32_t port;
  uint32_t reserved;
  uint8_t secret[16];
  uint64_t timeout_ns; /* of opening, and of each answer of a server */
} tenon_store_options;

/* Receives bytes that live for the duration of the call. */
typedef void (*tenon_bytes_fn)(void* user, const void* bytes, uint64_t size);

/* ==== Groups ==================================================================================== */

/* One rank's end of a group. One call at a time; `abort`, `failure`, `peers` and `records` from any thread. */
typedef struct tenon_rank_group_s* tenon_rank_group;
/* A call that a thread of the group carries out. */
typedef struct tenon_work_s* tenon_work;

enum {
  TENON_CALL_ALL_REDUCE = 0,
  TENON_CALL_ALL_GATHER = 1,
  TENON_CALL_REDUCE_SCATTER = 2,
  TENON_CALL_BROADCAST = 3,
  TENON_CALL_REDUCE = 4,
  TENON_CALL_ALL_TO_ALL = 5, /* lists of transfers, in which every rank takes part */
  TENON_CALL_GATHER = 6,
  TENON_CALL_SCATTER = 7,
  TENON_CALL_BARRIER = 8,
  TENON_CALL_EXCHANGE = 9, /* messages between those ranks that the lists name */
  TENON_CALL_COUNT = 10
};
/* Memory, counts and numbers are those of tenon_collective_api and tenon_exchange_api. */
typedef struct tenon_group_call {
  uint32_t struct_size;
  int32_t kind; /* TENON_CALL_* */
  const void* src;
  void* dst;
  uint64_t count;
  int32_t dtype;
  int32_t reduce; /* TENON_REDUCE_* */
  int32_t root;
  uint32_t transfer_count;
  const tenon_transfer* transfers;
  const char* site; /* (optional) the line of the program that calls, for messages: "train.py:88" */
} tenon_group_call;

/* What moves the data of a group, and of its parts. */
enum {
  TENON_TRANSPORT_HOST = 0, /* shared memory between ranks of one machine, TCP between machines */
  TENON_TRANSPORT_MPI = 1   /* the library of the MPI that started the ranks, opened at run time */
};
typedef struct tenon_group_options {
  uint32_t struct_size;
  int32_t rank;
  int32_t size;
  uint32_t transport;  /* TENON_TRANSPORT_*, the same on all ranks */
  const char* name;    /* of the meeting, unique in the store; messages have what is before a '/' */
  uint64_t timeout_ns; /* of meeting, and of waiting without any progress */
  /* (optional) Asked four times a second by calls that wait; other than 0 ends them with TENON_CANCELLED. */
  int32_t (*is_interrupted)(void* user);
  void* user;
} tenon_group_options;

/* Why a group has ended. */
enum {
  TENON_COLLECTIVE_WORKS = 0,
  TENON_COLLECTIVE_MISMATCH = 1,    /* ranks were in different calls */
  TENON_COLLECTIVE_PEER_FAILED = 2, /* a rank is dead, or left while others waited for it */
  TENON_COLLECTIVE_ABORTED = 3,
  TENON_COLLECTIVE_TIMEOUT = 4
};

/* One call of the last 2,048 of all groups that were made from one meeting. Times are nanoseconds of CLOCK_MONOTONIC. */
typedef struct tenon_group_record {
  uint64_t sequence; /* of the group, from 1 */
  uint64_t begin_ns;
  uint64_t end_ns; /* 0: under way */
  uint64_t count;
  int32_t kind;
  int32_t dtype;
  int32_t reduce;
  int32_t root;
  int32_t status;
  uint32_t reserved;
  char group[24];
  char site[80];
} tenon_group_record;

typedef struct tenon_group_counters {
  uint64_t calls;
  uint64_t bytes_sent; /* data to other ranks, without what describes the calls */
  uint64_t bytes_received;
  uint64_t waiting_ns; /* asleep in calls */
} tenon_group_counters;

typedef struct tenon_group_peer {
  int32_t rank;            /* in the meeting that the group was made from */
  int32_t is_here;         /* 0: it is dead, or has left */
  uint64_t heard_ns;       /* since its last sign of life */
  tenon_group_record last; /* its last call */
} tenon_group_peer;

typedef struct tenon_collectives_api {
  uint32_t struct_size;
  uint32_t version;

  /* Answers stores of kind TCP on `address` (NULL: all of this machine) until it is stopped; `*port` receives one that
   * the system chose, if it is 0. */
  tenon_status (*store_serve)(const char* address, uint32_t* port, const uint8_t secret[16],
                              tenon_store_server* out, tenon_err*);
  void (*store_stop)(tenon_store_server);
  /* One request at a time and handle, except for LOCAL; others wait for their turn. */
  tenon_status (*store_open)(const tenon_store_options*, tenon_store* out, tenon_err*);
  void (*store_close)(tenon_store);
  tenon_status (*store_set)(tenon_store, const char* key, const void* value, uint64_t size,
                            tenon_err*);
  /* Waits until the key is there; TENON_DEADLINE_EXCEEDED names it. */
  tenon_status (*store_get)(tenon_store, const char* key, uint64_t timeout_ns, tenon_bytes_fn,
                            void* user, tenon_err*);
  /* Adds to a decimal number, 0 if there is none; `*out` receives the sum. */
  tenon_status (*store_add)(tenon_store, const char* key, int64_t delta, int64_t* out, tenon_err*);
  /* Sets the key if its value is `expected` (absent: the empty value); gives the value that it has then. */
  tenon_status (*store_compare_set)(tenon_store, const char* key, const void* expected,
                                    uint64_t expected_size, const void* value, uint64_t size,
                                    tenon_bytes_fn, void* user, tenon_err*);
  tenon_status (*store_delete)(tenon_store, const char* key, int32_t* was_there, tenon_err*);

  /* Returns when all `size` ranks have come. The store is needed no longer. */
  tenon_status (*group_create)(tenon_store, const tenon_group_options*, tenon_rank_group* out,
                               tenon_err*);
  /* Every rank of the group calls this, each with the list of its own part, in order; a rank that is not in its list
   * gets NULL. Returns when those of the list have come. An abort of one ends them all. */
  tenon_status (*group_part)(tenon_rank_group, const char* name, const int32_t* ranks,
                             uint32_t count, tenon_rank_group* out, tenon_err*);
  /* Frees the handle. Parts stay usable; the ranks of the meeting are told once the last of them is closed. */
  void (*group_close)(tenon_rank_group);
  /* Carry out a call, after those that were started before it. */
  tenon_status (*run)(tenon_rank_group, const tenon_group_call*, tenon_err*);
  /* Begin a call; memory and transfers stay valid until the work is done. */
  tenon_status (*start)(tenon_rank_group, const tenon_group_call*, tenon_work* out, tenon_err*);
  /* What the call returned; TENON_DEADLINE_EXCEEDED if it goes on for longer than that, and then it still does. */
  tenon_status (*work_wait)(tenon_work, uint64_t timeout_ns, tenon_err*);
  int32_t (*work_is_completed)(tenon_work);
  void (*work_release)(tenon_work);

  /* From any thread: end this group and all made from the same meeting, on all ranks, with this text. */
  void (*abort)(tenon_rank_group, const char* text);
  /* TENON_COLLECTIVE_WORKS, or why it has ended; waits for nothing. */
  int32_t (*failure)(tenon_rank_group, tenon_bytes_fn text, void* user);
  /* Up to `capacity` records, oldest first; returns how many there are. */
  uint32_t (*records)(tenon_rank_group, tenon_group_record* out, uint32_t capacity);
  void (*counters)(tenon_rank_group, tenon_group_counters* out);
  /* The other ranks of the meeting; returns how many there are. */
  uint32_t (*peers)(tenon_rank_group, tenon_group_peer* out, uint32_t capacity);

  /* The same for host memory in the shape of a device's groups: `device` is ignored, streams must be NULL, and a
   * tenon_comm_id is used on one machine. */
  const tenon_collective_api* collective;
  const tenon_exchange_api* exchange;
} tenon_collectives_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_COLLECTIVES_H_ */
