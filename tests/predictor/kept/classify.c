/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user built against tenon/predictor.h of epoch 1, revision 0: a configuration, one predictor and a clone,
 * memory for input and output, texts. `classify` is this program as it was compiled then. */
#include <stdio.h>
#include <string.h>
#include <tenon/predictor.h>

int main(int count, char** arguments) {
  tenon_config* config;
  tenon_predictor *predictor, *clone;
  float x[8] = {1, -2, 3, -4, 5, -6, 7, -8}, scores[3];
  const int64_t shape[] = {1, 8}, scores_shape[] = {1, 3};
  tenon_predictor_view view = {.struct_size = sizeof view};
  tenon_predictor_type type = {.struct_size = sizeof type};
  uint32_t index;
  const char* text;
  if (count != 2 || tenon_predictor_version() >> 16 != 1) return 2;
  if (tenon_config_create(arguments[1], &config) ||
      tenon_config_set(config, "warmup", "recorded") ||
      tenon_predictor_create(config, &predictor) || tenon_predictor_clone(predictor, &clone) ||
      tenon_predictor_free(predictor) || tenon_config_free(config) ||
      tenon_predictor_input_find(clone, "x", &index) ||
      tenon_predictor_input_type(clone, index, &type) ||
      tenon_predictor_bind_input(clone, "x", TENON_DTYPE_F32, 2, shape, x, sizeof x) ||
      tenon_predictor_bind_output(clone, "scores", TENON_DTYPE_F32, 2, scores_shape, scores,
                                  sizeof scores) ||
      tenon_predictor_run(clone) || tenon_predictor_output(clone, "scores", &view) ||
      tenon_predictor_explain(clone, &text)) {
    fprintf(stderr, "%s\n", tenon_predictor_error());
    return 1;
  }
  if (view.data != scores || view.bytes != sizeof scores || type.ndim != 2 || type.shape[1] != 8 ||
      type.shape[0] != -1 || !strstr(text, "tenon::softmax"))
    return 3;
  if (tenon_predictor_run(predictor) != TENON_INVALID_ARGUMENT || !*tenon_predictor_error())
    return 4;
  printf("%d scores, sum %.3f\n", (int)view.shape[1], (double)(scores[0] + scores[1] + scores[2]));
  return tenon_predictor_free(clone);
}
