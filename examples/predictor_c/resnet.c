/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of two images by a small residual network, from a .tenon or a .onnx file: the same calls. */
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
  const int64_t shape[] = {2, 3, 16, 16};
  static float images[2 * 3 * 16 * 16];
  for (int i = 0; i < 2 * 3 * 16 * 16; ++i) images[i] = (float)(i % 23) / 22;

  if (tenon_config_create(count > 1 ? arguments[1] : "resnet.onnx", &config)) return fail("open");
  for (int i = 2; i + 1 < count; i += 2) /* of a model of ONNX with an open size: sizes batch=1:8 */
    if (tenon_config_set(config, arguments[i], arguments[i + 1])) return fail("set");
  if (tenon_predictor_create(config, &predictor)) return fail("load");
  if (tenon_predictor_bind_input(predictor, "image", TENON_DTYPE_F32, 4, shape, images,
                                 sizeof images) ||
      tenon_predictor_run(predictor) || tenon_predictor_output(predictor, "scores", &scores))
    return fail("run");
  for (int i = 0; i < 2 * (int)scores.shape[1]; ++i)
    printf("%.5f\n", ((const float*)scores.data)[i]);
  return tenon_predictor_free(predictor) || tenon_config_free(config);
}
