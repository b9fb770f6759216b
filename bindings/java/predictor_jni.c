/* SPDX-License-Identifier: Apache-2.0
 *
 * The native half of org.tenon.Predictor. A failure becomes a PredictorException with the text of the thread; a Java
 * exception that is pending (an array that could not be made) is left as it is. */
#include <jni.h>
#include <stdlib.h>
#include <tenon/predictor.h>

#define NATIVE(result, name) JNIEXPORT result JNICALL Java_org_tenon_Predictor_##name

static tenon_predictor* of(jlong handle) { return (tenon_predictor*)(uintptr_t)handle; }

/* Does the call go on? */
static int check(JNIEnv* env, tenon_status status) {
  if (status == TENON_OK) return 1;
  jstring text = (*env)->NewStringUTF(env, tenon_predictor_error());
  jclass type = (*env)->FindClass(env, "org/tenon/PredictorException");
  if (!text || !type) return 0;
  jmethodID make = (*env)->GetMethodID(env, type, "<init>", "(ILjava/lang/String;)V");
  jobject thrown = make ? (*env)->NewObject(env, type, make, status, text) : NULL;
  if (thrown) (*env)->Throw(env, (jthrowable)thrown);
  return 0;
}

NATIVE(jlong, create)
(JNIEnv* env, jclass self, jstring path, jobjectArray keys, jobjectArray values) {
  (void)self;
  tenon_config* config = NULL;
  tenon_predictor* made = NULL;
  const char* file = (*env)->GetStringUTFChars(env, path, NULL);
  if (!file) return 0;
  int is_fine = check(env, tenon_config_create(file, &config));
  (*env)->ReleaseStringUTFChars(env, path, file);
  for (jsize i = 0; is_fine && i < (*env)->GetArrayLength(env, keys); ++i) {
    jstring key = (jstring)(*env)->GetObjectArrayElement(env, keys, i);
    jstring value = (jstring)(*env)->GetObjectArrayElement(env, values, i);
    const char* key_text = (*env)->GetStringUTFChars(env, key, NULL);
    const char* value_text = key_text ? (*env)->GetStringUTFChars(env, value, NULL) : NULL;
    is_fine = value_text && check(env, tenon_config_set(config, key_text, value_text));
    if (value_text) (*env)->ReleaseStringUTFChars(env, value, value_text);
    if (key_text) (*env)->ReleaseStringUTFChars(env, key, key_text);
    (*env)->DeleteLocalRef(env, key);
    (*env)->DeleteLocalRef(env, value);
  }
  if (is_fine) check(env, tenon_predictor_create(config, &made));
  if (config) tenon_config_free(config);
  return (jlong)(uintptr_t)made;
}

NATIVE(jlong, cloneOf)(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  tenon_predictor* made = NULL;
  check(env, tenon_predictor_clone(of(handle), &made));
  return (jlong)(uintptr_t)made;
}

NATIVE(jobjectArray, names)(JNIEnv* env, jclass self, jlong handle, jboolean of_inputs) {
  (void)self;
  uint32_t count = 0;
  tenon_predictor* p = of(handle);
  if (!check(env, of_inputs ? tenon_predictor_input_count(p, &count)
                            : tenon_predictor_output_count(p, &count)))
    return NULL;
  jclass text_type = (*env)->FindClass(env, "java/lang/String");
  jobjectArray list = text_type ? (*env)->NewObjectArray(env, (jsize)count, text_type, NULL) : NULL;
  for (uint32_t i = 0; list && i < count; ++i) {
    const char* name = NULL;
    if (!check(env, of_inputs ? tenon_predictor_input_name(p, i, &name)
                              : tenon_predictor_output_name(p, i, &name)))
      return NULL;
    jstring text = (*env)->NewStringUTF(env, name);
    if (!text) return NULL;
    (*env)->SetObjectArrayElement(env, list, (jsize)i, text);
    (*env)->DeleteLocalRef(env, text);
  }
  return list;
}

NATIVE(void, bind)
(JNIEnv* env, jclass self, jlong handle, jstring name, jint dtype, jlongArray shape,
 jobject elements, jlong offset, jlong bytes) {
  (void)self;
  const char* data = (*env)->GetDirectBufferAddress(env, elements);
  const char* text = (*env)->GetStringUTFChars(env, name, NULL);
  jlong* sizes = text ? (*env)->GetLongArrayElements(env, shape, NULL) : NULL;
  if (sizes) {
    const int32_t ndim = (int32_t)(*env)->GetArrayLength(env, shape);
    check(env, tenon_predictor_bind_input(of(handle), text, dtype, ndim, (const int64_t*)sizes,
                                          data ? data + offset : NULL, (uint64_t)bytes));
    (*env)->ReleaseLongArrayElements(env, shape, sizes, JNI_ABORT);
  }
  if (text) (*env)->ReleaseStringUTFChars(env, name, text);
}

NATIVE(void, run)(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  check(env, tenon_predictor_run(of(handle)));
}

NATIVE(void, cancel)(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  check(env, tenon_predictor_cancel(of(handle)));
}

NATIVE(jbyteArray, output)
(JNIEnv* env, jclass self, jlong handle, jstring name, jintArray dtype, jobjectArray shape) {
  (void)self;
  tenon_predictor_view view = {.struct_size = sizeof view};
  const char* text = (*env)->GetStringUTFChars(env, name, NULL);
  if (!text) return NULL;
  const int is_fine = check(env, tenon_predictor_output(of(handle), text, &view));
  (*env)->ReleaseStringUTFChars(env, name, text);
  if (!is_fine) return NULL;
  if (view.bytes > INT32_MAX) {
    jclass type = (*env)->FindClass(env, "java/lang/IllegalStateException");
    if (type)
      (*env)->ThrowNew(env, type,
                       "expected an output of less than 2 GiB, which a Java array can hold");
    return NULL;
  }
  jlongArray sizes = (*env)->NewLongArray(env, view.ndim);
  jbyteArray elements = sizes ? (*env)->NewByteArray(env, (jsize)view.bytes) : NULL;
  if (!elements) return NULL;
  const jint number = view.dtype;
  (*env)->SetIntArrayRegion(env, dtype, 0, 1, &number);
  (*env)->SetLongArrayRegion(env, sizes, 0, view.ndim, (const jlong*)view.shape);
  (*env)->SetObjectArrayElement(env, shape, 0, sizes);
  (*env)->SetByteArrayRegion(env, elements, 0, (jsize)view.bytes, view.data);
  return elements;
}

NATIVE(jstring, explain)(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  const char* text = NULL;
  return check(env, tenon_predictor_explain(of(handle), &text)) ? (*env)->NewStringUTF(env, text)
                                                                : NULL;
}

NATIVE(void, free)(JNIEnv* env, jclass self, jlong handle) {
  (void)self;
  check(env, tenon_predictor_free(of(handle)));
}
