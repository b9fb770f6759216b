// SPDX-License-Identifier: Apache-2.0

package tenon_test

import (
	"fmt"
	"os"

	tenon "github.com/tenon-dl/tenon/bindings/go"
)

func ExamplePredictor_Run() {
	path := os.Getenv("TENON_TEST_MODELS") + "/pair.tenon"
	predictor, err := tenon.NewPredictor(path, map[string]string{"warmup": "recorded"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer predictor.Close()
	outputs, err := predictor.Run(map[string]tenon.Tensor{
		"a": tenon.NewTensor([]int64{2, 3}, []float32{0, 1, 2, 3, 4, 5}),
		"b": tenon.NewTensor([]int64{2, 3}, []int64{1, 1, 1, 1, 1, 1}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := tenon.Elements[float32](outputs["output_0"])
	fmt.Println(predictor.Inputs(), sum, err)
	// Output: [a b] [1 3 5 7 9 11] <nil>
}
