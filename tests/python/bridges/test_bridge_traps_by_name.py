# SPDX-License-Identifier: Apache-2.0
"""What other bridges got wrong, by the numbers of those reports: which test here holds it. Those tests need PyTorch or Paddle's
files; this one asks that each of them is there, so that a test that is renamed or taken away takes its place in the list along."""

import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent

TRAPS = {
    "llvm/torch-mlir#4744": "test_torch_traps.py::test_torch_mlir_4744_a_buffer_that_is_not_persistent_is_there",
    "llvm/torch-mlir#3798": "test_torch_archive.py::test_results_are_those_of_the_program_through_pytorch",
    "pytorch#136543": "test_torch_load.py::test_transformers_keep_attention_and_norms_whole",
    "pytorch#119439": "test_torch_device_attention.py::test_it_is_one_operator_and_others_are_taken_apart",
    "pytorch#169732": "test_torch_device_attention.py::test_inputs_that_lie_otherwise_and_half_precision",
    "pytorch#179287": "test_torch_device.py::test_views_share_their_storage",
    "apache/tvm#18339": "test_torch_traps.py::test_tvm_18339_recurrent_layers",
    "apache/tvm#18574": "test_torch_traps.py::test_tvm_18574_products_and_means",
    "apache/tvm#18340": "test_torch_load.py::test_all_that_is_missing_is_said_at_once",
    "apache/tvm#18356": "test_torch_traps.py::test_tvm_18574_products_and_means",
    "pytorch/xla#8200": "test_torch_load.py::test_sizes_that_each_call_chooses",
    "pytorch/xla#7845": "test_torch_traps.py::test_xla_7845_constants_of_the_code",
    "pytorch#112429": "test_torch_load.py::test_inputs_that_the_model_writes",
    "pytorch#108432": "test_torch_traps.py::test_pt_108432_the_first_call_writes_once",
    "pytorch#104984": "test_torch_traps.py::test_pt_104984_weights_are_read_at_each_call",
    "pytorch#129362": "test_torch_load.py::test_weights_are_shared_and_tied_ones_once",
    "pytorch#114189": "test_torch_traps.py::test_pt_114189_gradients_reach_what_each_result_depends_on",
    "pytorch#194719": "test_torch_traps.py::test_pt_194719_gradients_lie_as_their_parameters",
    "torchdynamo#14": "test_torch_traps.py::test_torchdynamo_14_truths",
    "the C table of DLPack": "test_torch_traps.py::test_a_parameter_does_not_lose_its_gradient_without_a_word",
    "microsoft/DirectML#431": "test_torch_device.py::test_what_runs_on_the_cpu_fills_its_results",
    "microsoft/DirectML#362": "test_torch_device.py::test_running_statistics_move",
    "microsoft/DirectML#678": "test_torch_device_traps.py::test_directml_678_backward_passes_of_what_the_cpu_computes",
    "microsoft/DirectML#449": "test_torch_device_traps.py::test_directml_449_what_the_cpu_computes_of_views_and_writes_into_them",
    "tinygrad#17210": "test_torch_device.py::test_out_into_a_view_and_into_other_shapes",
    "tinygrad#13709": "test_torch_device_traps.py::test_tinygrad_13709_tensors_have_storages",
    "pytorch#170401": "test_torch_device.py::test_shallow_copies",
    "pytorch#196975": "test_torch_device_traps.py::test_pt_196975_results_do_not_share_memory_that_they_should_not",
    "PaddleX#4875": "test_paddle_load.py::test_a_saved_model_gives_paddles_results",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_the_trap_has_its_test(trap):
    file, _, name = TRAPS[trap].partition("::")
    assert re.search(rf"^def {name}\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE)
