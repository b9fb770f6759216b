/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of tenon/predictor.h, epoch 1, which programs that are built have in them. A line that fails says that a
 * member moved: put it back, and append instead. */
#include <tenon/predictor.h>

#include <stddef.h>

#define AT(structure, member, offset) \
  _Static_assert(offsetof(structure, member) == (offset), #structure "." #member " moved")
#define AT_LEAST(structure, size) _Static_assert(sizeof(structure) >= (size), #structure " shrank")

_Static_assert(TENON_PREDICTOR_EPOCH == 1, "another epoch has a layout file of its own");
_Static_assert(TENON_PREDICTOR_FIXED == -1 && TENON_PREDICTOR_FOLLOWS == -2, "a constant changed");
_Static_assert(TENON_MAX_NDIM == 32, "arrays of the structures have this length");

AT(tenon_predictor_dimension, struct_size, 0);
AT(tenon_predictor_dimension, reserved, 4);
AT(tenon_predictor_dimension, name, 8);
AT(tenon_predictor_dimension, min, 16);
AT(tenon_predictor_dimension, max, 24);
AT(tenon_predictor_dimension, multiple, 32);
AT(tenon_predictor_dimension, recorded, 40);
AT_LEAST(tenon_predictor_dimension, 48);

AT(tenon_predictor_type, struct_size, 0);
AT(tenon_predictor_type, dtype, 4);
AT(tenon_predictor_type, ndim, 8);
AT(tenon_predictor_type, reserved, 12);
AT(tenon_predictor_type, shape, 16);
AT(tenon_predictor_type, dimensions, 272);
AT_LEAST(tenon_predictor_type, 400);

AT(tenon_predictor_view, struct_size, 0);
AT(tenon_predictor_view, dtype, 4);
AT(tenon_predictor_view, ndim, 8);
AT(tenon_predictor_view, reserved, 12);
AT(tenon_predictor_view, data, 16);
AT(tenon_predictor_view, bytes, 24);
AT(tenon_predictor_view, shape, 32);
AT_LEAST(tenon_predictor_view, 288);

AT(tenon_predictor_step, struct_size, 0);
AT(tenon_predictor_step, index, 4);
AT(tenon_predictor_step, name, 8);
AT(tenon_predictor_step, file, 16);
AT(tenon_predictor_step, line, 24);
AT(tenon_predictor_step, reserved, 28);
AT_LEAST(tenon_predictor_step, 32);

AT(tenon_predictor_memory_use, struct_size, 0);
AT(tenon_predictor_memory_use, reserved, 4);
AT(tenon_predictor_memory_use, weights, 8);
AT(tenon_predictor_memory_use, results, 16);
AT_LEAST(tenon_predictor_memory_use, 24);

AT(tenon_config_key_info, struct_size, 0);
AT(tenon_config_key_info, is_available, 4);
AT(tenon_config_key_info, name, 8);
AT(tenon_config_key_info, default_value, 16);
AT(tenon_config_key_info, text, 24);
AT_LEAST(tenon_config_key_info, 32);

/* The types of functions, as C sees them. */
tenon_status (*const kCreate)(tenon_config*, tenon_predictor**) = tenon_predictor_create;
tenon_status (*const kBind)(tenon_predictor*, const char*, int32_t, int32_t, const int64_t*,
                            const void*, uint64_t) = tenon_predictor_bind_input;
tenon_status (*const kRun)(tenon_predictor*) = tenon_predictor_run;
tenon_status (*const kOutput)(tenon_predictor*, const char*,
                              tenon_predictor_view*) = tenon_predictor_output;
