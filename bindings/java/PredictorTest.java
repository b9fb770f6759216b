// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import org.tenon.DType;
import org.tenon.Predictor;
import org.tenon.PredictorException;

/** Exits with a failure where a check does not hold. */
public final class PredictorTest {
  private static String model(String name) {
    return System.getenv("TENON_TEST_MODELS") + "/" + name + (name.contains(".") ? "" : ".tenon");
  }

  private static void check(boolean holds, Object what) {
    if (!holds) throw new AssertionError(String.valueOf(what));
  }

  private static void expect(int status, String piece, Runnable call) {
    try {
      call.run();
    } catch (PredictorException error) {
      check(error.status() == status && error.getMessage().contains(piece), error.status() + ": " + error.getMessage());
      return;
    }
    check(false, "expected a failure with '" + piece + "'");
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  public static void main(String[] arguments) throws Exception {
    ByteBuffer x = buffer(3 * 8 * 4);
    for (int i = 0; i < 24; ++i) x.putFloat(4 * i, (i % 11) / 5f - 1);
    try (Predictor predictor = new Predictor(model("classifier"), Map.of("warmup", "recorded", "fallback", "deny"))) {
      check(predictor.inputs().equals(List.of("x")), predictor.inputs());
      check(predictor.outputs().equals(List.of("scores", "hidden")), predictor.outputs());
      expect(9, "missing 'x'", predictor::run);
      expect(3, "expected 96 bytes", () -> predictor.bindInput("x", DType.FLOAT32, new long[] {3, 8}, buffer(8)));
      expect(17, "got float64[3, 8]", () -> predictor.bindInput("x", DType.FLOAT64, new long[] {3, 8}, x));
      predictor.bindInput("x", DType.FLOAT32, new long[] {3, 8}, x);
      predictor.run();
      Predictor.Output scores = predictor.output("scores");
      check(scores.dtype() == DType.FLOAT32 && scores.shape()[0] == 3 && scores.shape()[1] == 3, scores);
      float sum = 0;
      for (int i = 0; i < 3; ++i) sum += scores.elements().getFloat(4 * i);
      check(Math.abs(sum - 1) < 1e-5, sum);
      check(predictor.explain().contains("tenon::softmax"), predictor.explain());
      x.putFloat(0, -50); // the next run reads it anew
      predictor.run();
      check(!predictor.output("scores").elements().equals(scores.elements()), "expected other scores");
      Predictor other = predictor.newClone();
      Thread thread =
          new Thread(
              () -> {
                other.bindInput("x", DType.FLOAT32, new long[] {3, 8}, x);
                for (int i = 0; i < 50; ++i) other.run();
              });
      thread.start();
      for (int i = 0; i < 50; ++i) predictor.run();
      thread.join();
      check(other.output("scores").elements().equals(predictor.output("scores").elements()), "a clone gives another result");
      other.close();
      expect(3, "was freed", other::run);
    }
    try (Predictor predictor = new Predictor(model("classifier.onnx"), Map.of("sizes", "batch=1:16"))) {
      predictor.bindInput("x", DType.FLOAT32, new long[] {3, 8}, x);
      predictor.run();
      check(predictor.output("scores").shape()[0] == 3, "a model of ONNX");
    }
    expect(3, "set the key `sizes`, to 'batch=8'", () -> new Predictor(model("classifier.onnx"), Map.of()));
    expect(5, "nothing.tenon", () -> new Predictor(model("nothing"), Map.of()));
    expect(12, "`affinity` is not there yet", () -> new Predictor(model("pair"), Map.of("affinity", "0")));
    try {
      new Predictor(model("classifier"), Map.of()).bindInput("x", DType.FLOAT32, new long[] {3, 8}, ByteBuffer.allocate(96));
      check(false, "expected a refusal of memory that may move");
    } catch (IllegalArgumentException error) {
      check(error.getMessage().contains("allocateDirect"), error);
    }
    System.out.println("fine");
  }
}
