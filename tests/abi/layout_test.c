/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezes the contract: sizes, offsets, constants and, where the compiler can name them, types of
 * tenon/abi.h against epoch<N>.layout. Built as C11 and, through layout_test_cpp.cpp, as C++20.
 *
 *   layout_test <abi.h> <epochN.layout>           compare
 *   layout_test <abi.h> <epochN.layout> --write   record (C++ build only: C cannot name types) */
#include <tenon/abi.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout_members.h"

#ifdef __cplusplus
#include <typeinfo>
/* Mangled names: the same with every compiler for the platform. */
#define TYPE_NAME(structure, member) typeid(decltype(structure::member)).name()
#else
#define TYPE_NAME(structure, member) "?"
#endif

typedef struct Line {
  char key[96];   /* "tenon_value.aux", "sizeof tenon_value", "TENON_OK" */
  char text[512]; /* offset, size, type; or the value */
  int found;
} Line;

typedef struct Layout {
  Line lines[2048];
  int count;
} Layout;

static Layout current, golden;
static int failures = 0;

static void add(Layout* layout, const char* key, const char* text) {
  if (layout->count == 2048) {
    fprintf(stderr, "more lines than this test has room for\n");
    exit(2);
  }
  Line* line = &layout->lines[layout->count++];
  snprintf(line->key, sizeof line->key, "%s", key);
  snprintf(line->text, sizeof line->text, "%s", text);
}

static Line* find(Layout* layout, const char* key) {
  for (int i = 0; i < layout->count; ++i) {
    if (strcmp(layout->lines[i].key, key) == 0) return &layout->lines[i];
  }
  return NULL;
}

/* ---- what the compiler says ---- */

static size_t struct_end = 0; /* where the member before ended */
static size_t struct_size = 0;

static void end_struct(const char* name) {
  /* Padding is written out as `reserved`, so a hole is a member that layout_members.h lacks. */
  if (struct_end == struct_size) return;
  fprintf(stderr,
          "%s: bytes %zu to %zu belong to no member; add it to tests/abi/layout_members.h\n", name,
          struct_end, struct_size);
  ++failures;
}

static void add_struct(const char* name, size_t size) {
  char key[96], text[32];
  snprintf(key, sizeof key, "sizeof %s", name);
  snprintf(text, sizeof text, "%zu", size);
  add(&current, key, text);
  struct_end = 0;
  struct_size = size;
}

static void add_member(const char* structure, const char* member, size_t offset, size_t size,
                       const char* type) {
  char key[96], text[512];
  size_t align = size >= 8 ? 8 : size;
  if (offset < struct_end || offset - struct_end >= align) {
    fprintf(stderr, "%s: the member before `%s` is missing in tests/abi/layout_members.h\n",
            structure, member);
    ++failures;
  }
  struct_end = offset + size;
  snprintf(key, sizeof key, "%s.%s", structure, member);
  snprintf(text, sizeof text, "%zu %zu %s", offset, size, type);
  add(&current, key, text);
}

static void describe_structs(void) {
  const char* open = NULL;
#define BEGIN_STRUCT(structure) \
  if (open) end_struct(open);   \
  open = #structure;            \
  add_struct(#structure, sizeof(structure));
#define DESCRIBE(structure, member)                                                             \
  add_member(#structure, #member, offsetof(structure, member), sizeof(((structure*)0)->member), \
             TYPE_NAME(structure, member));
#define DESCRIBE_SLOT(result, name, parameters) DESCRIBE(tenon_host, name)
  TENON_LAYOUT(BEGIN_STRUCT, DESCRIBE)
  BEGIN_STRUCT(tenon_host)
  DESCRIBE(tenon_host, struct_size)
  DESCRIBE(tenon_host, revision)
  DESCRIBE(tenon_host, features)
  TENON_HOST_SLOTS(DESCRIBE_SLOT)
  end_struct(open);
}

/* ---- what the header's text says ---- */

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* text = (char*)malloc((size_t)size + 1);
  size_t got = fread(text, 1, (size_t)size, file);
  text[got] = 0;
  fclose(file);
  return text;
}

/* "NAME = 12" in enums and "#define NAME 12". */
static void describe_constants(const char* header) {
  for (const char* at = header; (at = strstr(at, "TENON_")) != NULL;) {
    size_t length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char* value = at + length;
    int defined = at - header >= 8 && strncmp(at - 8, "#define ", 8) == 0;
    if (strncmp(value, defined ? " " : " = ", defined ? 1 : 3) == 0) {
      value += defined ? 1 : 3;
      size_t digits = strspn(value, "0123456789");
      char key[96], text[32];
      snprintf(key, sizeof key, "%.*s", (int)length, at);
      snprintf(text, sizeof text, "%.*s", (int)digits, value);
      if (digits > 0 && strcmp(key, "TENON_ABI_EPOCH") != 0) add(&current, key, text);
    }
    at += length;
  }
}

static void check_all_structs_listed(const char* header) {
  static const char kBegin[] = "typedef struct ";
  for (const char* at = header; (at = strstr(at, kBegin)) != NULL;) {
    at += sizeof kBegin - 1;
    size_t length = strcspn(at, " ;*");
    if (strncmp(at + length, " {", 2) != 0) continue;
    char key[96];
    snprintf(key, sizeof key, "sizeof %.*s", (int)length, at);
    if (find(&current, key)) continue;
    fprintf(stderr, "struct %.*s is missing in tests/abi/layout_members.h\n", (int)length, at);
    ++failures;
  }
}

/* ---- golden file ---- */

static int load_golden(const char* path) {
  char* text = read_file(path);
  if (!text) return 0;
  for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char* colon = strstr(line, ": ");
    if (line[0] == '#' || !colon) continue;
    *colon = 0;
    add(&golden, line, colon + 2);
  }
  free(text);
  return 1;
}

static int write_golden(const char* path) {
  FILE* file = fopen(path, "w");
  if (!file) return 0;
  fprintf(file, "# ABI epoch %u, written by tests/abi/layout_test.c. Member: offset size type.\n",
          TENON_ABI_EPOCH);
  for (int i = 0; i < current.count; ++i)
    fprintf(file, "%s: %s\n", current.lines[i].key, current.lines[i].text);
  return fclose(file) == 0;
}

/* Equal, or equal as far as a C compiler can tell. */
static int same_text(const char* now, const char* then) {
  size_t known = strcspn(now, "?");
  return strcmp(now, then) == 0 || (now[known] == '?' && strncmp(now, then, known) == 0);
}

/* A table that carries its size may grow at its end. */
static int is_growth(const char* key, const char* now, const char* then) {
  char member[96];
  if (strcmp(key, "TENON_ABI_REVISION") == 0 || strcmp(key, "TENON_DTYPE_COUNT") == 0 ||
      strcmp(key, "TENON_GROUP_COUNT") == 0)
    return 1;
  if (strncmp(key, "sizeof ", 7) != 0 || atol(now) < atol(then)) return 0;
  snprintf(member, sizeof member, "%s.struct_size", key + 7);
  return find(&current, member) != NULL;
}

static int compare(void) {
  int broken = 0, grown = 0;
  for (int i = 0; i < golden.count; ++i) {
    Line* then = &golden.lines[i];
    Line* now = find(&current, then->key);
    if (now) now->found = 1;
    if (now && same_text(now->text, then->text)) continue;
    if (now && is_growth(then->key, now->text, then->text)) {
      ++grown;
      continue;
    }
    fprintf(stderr, "CHANGED %s: was %s, is %s\n", then->key, then->text, now ? now->text : "gone");
    ++broken;
  }
  for (int i = 0; i < current.count; ++i) {
    if (current.lines[i].found) continue;
    fprintf(stderr, "NEW %s: %s\n", current.lines[i].key, current.lines[i].text);
    ++grown;
  }
  if (broken) {
    fprintf(stderr,
            "\n%d change(s) break every plugin that is already built. Undo them: append instead. "
            "If the\n"
            "contract has to break, raise TENON_ABI_EPOCH in tenon/abi.h and record a new\n"
            "tests/abi/epoch<N>.layout with `layout_test_cpp <abi.h> <file> --write`.\n",
            broken);
    return 1;
  }
  Line* revision = find(&golden, "TENON_ABI_REVISION");
  if (grown && revision && atol(revision->text) == (long)TENON_ABI_REVISION) {
    fprintf(
        stderr,
        "\nThe contract has grown. Raise TENON_ABI_REVISION in tenon/abi.h, then record it with\n"
        "`layout_test_cpp <abi.h> <file> --write`.\n");
    return 1;
  }
  if (grown) {
    fprintf(stderr, "\nRecord the growth with `layout_test_cpp <abi.h> <file> --write`.\n");
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "expected: layout_test <abi.h> <epochN.layout> [--write]\n");
    return 2;
  }
  char* header = read_file(argv[1]);
  if (!header) {
    fprintf(stderr, "cannot read %s\n", argv[1]);
    return 2;
  }
  describe_structs();
  describe_constants(header);
  check_all_structs_listed(header);
  free(header);
  if (failures) return 1;
  if (argc > 3 && strcmp(argv[3], "--write") == 0) return write_golden(argv[2]) ? 0 : 2;
  if (!load_golden(argv[2])) {
    fprintf(stderr, "cannot read %s: epoch %u has no recorded layout\n", argv[2], TENON_ABI_EPOCH);
    return 1;
  }
  return compare();
}
