/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies one image by a model that Python exported: examples/run_program/export.py writes it. */
#include <stdio.h>
#include <tenon/predictor.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tenon_predictor_error());
  return 1;
}

int main(int count, char** arguments) {
  tenon_config* config;
  tenon_predictor* predictor;
  tenon_predictor_view scores = {.struct_size = sizeof scores};
  float pixels[784];
  const int64_t shape[] = {1, 784};
  for (int i = 0; i < 784; ++i) pixels[i] = (float)(i % 17) / 16;

  if (tenon_config_create(count > 1 ? arguments[1] : "model.tenon", &config) ||
      tenon_config_set(config, "warmup", "x=1x784") || tenon_predictor_create(config, &predictor))
    return fail("load");
  if (tenon_predictor_bind_input(predictor, "x", TENON_DTYPE_F32, 2, shape, pixels,
                                 sizeof pixels) ||
      tenon_predictor_run(predictor) || tenon_predictor_output(predictor, "output_0", &scores))
    return fail("run");

  const float* score = scores.data;
  int best = 0;
  for (int i = 1; i < (int)scores.shape[1]; ++i)
    if (score[i] > score[best]) best = i;
  printf("class %d of %d\n", best, (int)scores.shape[1]);
  return tenon_predictor_free(predictor) || tenon_config_free(config);
}
