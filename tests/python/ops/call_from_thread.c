/* SPDX-License-Identifier: Apache-2.0 */
/* For test_python_operator_kernels.py: a kernel of another language, and calls from a thread that Python
 * has never seen. */
#include <pthread.h>
#include <string.h>
#include <tenon/abi.h>

void scale(const float* x, float* out, int64_t count, float factor, void* stream) {
  (void)stream; /* the CPU has none: work is done on return */
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}

struct call {
  const tenon_host* host;
  const char* op;
  float value;
  char error[256];
};

static void* run(void* user) {
  struct call* call = user;
  const tenon_host* host = call->host;
  tenon_err* err = host->err_create();
  int64_t shape = 1;
  tenon_tensor* x;
  if (host->tensor_create(host->device_host(), TENON_DTYPE_F32, 1, &shape, &x, err) == TENON_OK) {
    *(float*)x->data = call->value;
    tenon_value arg = {TENON_VALUE_TENSOR, 0, {.p = x}}, result = {TENON_VALUE_NONE, 0, {0}};
    if (host->op_call(host->op_find(call->op), &arg, 1, &result, 1, err) == TENON_OK) {
      call->value = *(float*)((tenon_tensor*)result.v.p)->data;
      host->tensor_release(result.v.p);
    }
    host->tensor_release(x);
  }
  if (host->err_code(err) != TENON_OK)
    strncpy(call->error, host->err_text(err), sizeof call->error - 1);
  host->err_destroy(err);
  return NULL;
}

/* Call operator `op` with one number; the error's text, or "", is left in `error`. */
float call_on_new_thread(const tenon_host* host, const char* op, float value, char error[256]) {
  struct call call = {host, op, value, ""};
  pthread_t thread;
  pthread_create(&thread, NULL, run, &call);
  pthread_join(thread, NULL);
  memcpy(error, call.error, sizeof call.error);
  return call.value;
}
