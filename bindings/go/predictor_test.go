// SPDX-License-Identifier: Apache-2.0

package tenon

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

func model(name string) string {
	if !strings.Contains(name, ".") {
		name += ".tenon"
	}
	return os.Getenv("TENON_TEST_MODELS") + "/" + name
}

func rows(count int) Tensor {
	elements := make([]float32, count*8)
	for i := range elements {
		elements[i] = float32(i%11)/5 - 1
	}
	return NewTensor([]int64{int64(count), 8}, elements)
}

func made(t *testing.T, name string, settings map[string]string) *Predictor {
	predictor, err := NewPredictor(model(name), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { predictor.Close() })
	return predictor
}

func TestRunsByName(t *testing.T) {
	predictor := made(t, "classifier", map[string]string{"warmup": "recorded", "fallback": "deny"})
	outputs, err := predictor.Run(map[string]Tensor{"x": rows(3)})
	if err != nil {
		t.Fatal(err)
	}
	scores, err := Elements[float32](outputs["scores"])
	if err != nil || len(scores) != 9 || outputs["hidden"].Shape[1] != 4 {
		t.Fatal(scores, outputs["hidden"].Shape, err)
	}
	if sum := scores[0] + scores[1] + scores[2]; sum < 0.999 || sum > 1.001 {
		t.Errorf("expected a sum of 1, got %v", sum)
	}
	if text, err := predictor.Explain(); err != nil || !strings.Contains(text, "tenon::softmax") {
		t.Error(text, err)
	}
	if _, err := Elements[int64](outputs["scores"]); err == nil || !strings.Contains(err.Error(), "float32") {
		t.Error(err)
	}
}

func TestTakesSeveralDtypes(t *testing.T) {
	predictor := made(t, "pair", nil)
	outputs, err := predictor.Run(map[string]Tensor{
		"a": NewTensor([]int64{2, 3}, []float32{1, 1, 1, 1, 1, 1}),
		"b": NewTensor([]int64{2, 3}, []int64{1, 2, 3, 4, 5, 6}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum, _ := Elements[float32](outputs["output_0"]); sum[5] != 8 {
		t.Error(sum)
	}
}

func TestOpensModelsOfOnnx(t *testing.T) {
	expected, err := made(t, "classifier", nil).Run(map[string]Tensor{"x": rows(3)})
	if err != nil {
		t.Fatal(err)
	}
	predictor := made(t, "classifier.onnx", map[string]string{"sizes": "batch=1:16"})
	outputs, err := predictor.Run(map[string]Tensor{"x": rows(3)})
	if err != nil {
		t.Fatal(err)
	}
	wanted, _ := Elements[float32](expected["scores"])
	got, err := Elements[float32](outputs["scores"])
	if err != nil || len(got) != len(wanted) {
		t.Fatal(got, err)
	}
	for i := range got {
		if d := got[i] - wanted[i]; d > 1e-6 || d < -1e-6 {
			t.Error(got, wanted)
		}
	}
	_, err = NewPredictor(model("classifier.onnx"), nil)
	if err == nil || !strings.Contains(err.Error(), "set the key `sizes`, to 'batch=8'") {
		t.Error(err)
	}
}

func TestErrorsAreTexts(t *testing.T) {
	expect := func(err error, status, piece string) {
		t.Helper()
		var found *Error
		if !errors.As(err, &found) || found.Status != status || !strings.Contains(found.Text, piece) {
			t.Errorf("expected %s with '%s', got %v", status, piece, err)
		}
	}
	_, err := NewPredictor(model("nothing"), nil)
	expect(err, "NOT_FOUND", "nothing.tenon")
	_, err = NewPredictor(model("pair"), map[string]string{"affinity": "0"})
	expect(err, "UNSUPPORTED", "`affinity` is not there yet")
	predictor := made(t, "classifier", nil)
	_, err = predictor.Run(map[string]Tensor{})
	expect(err, "FAILED_PRECONDITION", "missing 'x'")
	_, err = predictor.Run(map[string]Tensor{"x": NewTensor([]int64{1, 8}, make([]float64, 8))})
	expect(err, "TYPE_MISMATCH", "got float64[1, 8]")
	_, err = predictor.Run(map[string]Tensor{"x": NewTensor([]int64{2, 8}, make([]float32, 8))})
	expect(err, "INVALID_ARGUMENT", "expected 64 bytes for float32[2, 8], got 32")
	other, err := predictor.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	expect(other.Close(), "INVALID_ARGUMENT", "was freed")
	_, err = other.Run(map[string]Tensor{"x": rows(1)})
	expect(err, "INVALID_ARGUMENT", "was freed")
}

func TestClonesRunInGoroutines(t *testing.T) {
	predictor := made(t, "classifier", nil)
	expected, err := predictor.Run(map[string]Tensor{"x": rows(5)})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		clone, err := predictor.Clone()
		if err != nil {
			t.Fatal(err)
		}
		group.Add(1)
		go func() {
			defer group.Done()
			defer clone.Close()
			for k := 0; k < 50; k++ {
				got, err := clone.Run(map[string]Tensor{"x": rows(5)})
				if err != nil || string(got["scores"].Bytes) != string(expected["scores"].Bytes) {
					t.Error("another result", err)
				}
			}
		}()
	}
	group.Wait()
}
