// SPDX-License-Identifier: Apache-2.0
package org.tenon;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs a program that Python exported with Tenon, by libtenon_predictor (tenon/predictor.h).
 *
 * <pre>
 * try (Predictor predictor = new Predictor("model.tenon", Map.of("warmup", "recorded"))) {
 *   predictor.bindInput("x", DType.FLOAT32, new long[] {1, 784}, pixels); // read by each run, not copied
 *   predictor.run();
 *   float first = predictor.output("scores").elements().asFloatBuffer().get(0);
 * }
 * </pre>
 *
 * <p>An object serves one thread at a time, and others wait for it; those that run at once take {@link #newClone}. Its
 * methods synchronize on it, and so does a thread that shares it, around its bindings, the run and the outputs:
 * {@code synchronized (predictor) { ... }}. The library of bindings/java is loaded from
 * the system property org.tenon.library, a path, or else by the name tenon_predictor_jni.
 */
public final class Predictor implements AutoCloseable {
  /** An output, with a copy of its elements in row-major order and the processor's byte order. */
  public record Output(DType dtype, long[] shape, ByteBuffer elements) {}

  static {
    String path = System.getProperty("org.tenon.library");
    if (path != null) {
      System.load(path);
    } else {
      System.loadLibrary("tenon_predictor_jni");
    }
  }

  private final long handle; // a number that the library checks, also after close
  private final Map<String, ByteBuffer> bound = new HashMap<>(); // kept as long as it reads them

  /** Loads the program; settings are those of tenon_config_set. */
  public Predictor(String path, Map<String, String> settings) {
    this(create(path, settings.keySet().toArray(new String[0]), settings.values().toArray(new String[0])));
  }

  private Predictor(long handle) {
    this.handle = handle;
  }

  /** Another one with the same weights, for another thread. */
  public Predictor newClone() {
    return new Predictor(cloneOf(handle));
  }

  public List<String> inputs() {
    return List.of(names(handle, true));
  }

  public List<String> outputs() {
    return List.of(names(handle, false));
  }

  /** Elements from the buffer's position to its limit: a direct buffer in the processor's byte order, read by each run. */
  public synchronized void bindInput(String name, DType dtype, long[] shape, ByteBuffer elements) {
    if (!elements.isDirect() || elements.order() != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "expected a buffer of ByteBuffer.allocateDirect in ByteOrder.nativeOrder(), got another one");
    }
    bind(handle, name, dtype.ordinal(), shape, elements, elements.position(), elements.remaining());
    bound.put(name, elements);
  }

  public synchronized void run() {
    run(handle);
  }

  /** From any thread, without waiting: ends the run that is under way. Runs that begin later are not concerned. */
  public void cancel() {
    cancel(handle);
  }

  public synchronized Output output(String name) {
    int[] dtype = new int[1];
    long[][] shape = new long[1][];
    byte[] elements = output(handle, name, dtype, shape);
    return new Output(
        DType.values()[dtype[0]], shape[0], ByteBuffer.wrap(elements).order(ByteOrder.nativeOrder()));
  }

  /** What runs each step. */
  public synchronized String explain() {
    return explain(handle);
  }

  /** Waits for the run that is under way. */
  @Override
  public synchronized void close() {
    free(handle);
    bound.clear();
  }

  private static native long create(String path, String[] keys, String[] values);

  private static native long cloneOf(long handle);

  private static native String[] names(long handle, boolean ofInputs);

  private static native void bind(
      long handle, String name, int dtype, long[] shape, ByteBuffer elements, long offset, long bytes);

  private static native void run(long handle);

  private static native void cancel(long handle);

  private static native byte[] output(long handle, String name, int[] dtype, long[][] shape);

  private static native String explain(long handle);

  private static native void free(long handle);
}
