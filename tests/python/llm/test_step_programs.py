# SPDX-License-Identifier: Apache-2.0
"""Steps of a decoder as programs: the bits of the calls, which steps are recorded, and 8-bit activations."""

import threading

import numpy
import pytest
import tenon
from tenon.llm import Decoder, LanguageModel
from tenon.llm.models import Experts, programs
from tenon.llm.quantize import quantize
from test_decoder import IDS, config, decoder, step


def without_programs(model):
    plain = Decoder(model.config, model.weights, model.activations)
    plain._programs = programs.StepPrograms(enabled=False)
    return plain


def known(model):
    return model._programs.known


@pytest.mark.parametrize("cap", [None, 2.0])
def test_programs_have_the_bits_of_the_calls(cap):
    model = decoder(attention_softcap=cap)
    plain = without_programs(model)
    pools, others = model.new_pools(6), plain.new_pools(6)
    for at, token in enumerate(IDS):  # over the ends of blocks and windows
        parts = [([token], at, [4, 1, 3])]
        assert step(model, pools, parts).tobytes() == step(plain, others, parts).tobytes(), at
        assert known(model) == (at > programs.CALLS_BEFORE)
    for made, wanted in zip(pools, others):
        for one, other in zip(made, wanted):
            assert one.numpy().tobytes() == other.numpy().tobytes()
    assert known(plain) == 0


def test_each_number_of_sequences_has_a_program(monkeypatch):
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 2)
    model = decoder()
    plain = without_programs(model)
    pools, others = model.new_pools(8), plain.new_pools(8)
    for count in (1, 2, 3, 1):
        for at in range(5):
            parts = [([IDS[at + row]], at, [row, 3 + row]) for row in range(count)]
            assert step(model, pools, parts).tobytes() == step(plain, others, parts).tobytes()
        assert 1 <= known(model) <= 2
    assert known(model) == 2


def test_long_prompts_are_not_recorded():
    model = decoder(max_positions=128)
    pools = model.new_pools(8)
    for _ in range(5):
        step(model, pools, [((IDS * 3)[: programs.MOST_ROWS + 1], 0, [0, 1, 2, 3, 4])])
    assert known(model) == 0


@pytest.mark.parametrize("format", [None, "q8_0", "q4_0"])
def test_steps_of_experts_are_programs_with_the_bits_of_each_expert_alone(format):
    mixed = decoder(
        experts=Experts(3, 2, 32),
        hidden_size=64,
        intermediate_size=96,
        head_dim=16,
        max_positions=64,
    )
    if format:
        weights = {
            name: quantize(weight, format) if len(weight.shape) == 2 else weight
            for name, weight in mixed.weights.items()
        }
        mixed = Decoder(mixed.config, weights)
    plain = without_programs(mixed)
    plain._stacked = False  # calls each expert on its rows
    pools, others = mixed.new_pools(6), plain.new_pools(6)
    for at, token in enumerate(IDS[:12]):
        parts = [([token], at, [4, 1]), ([IDS[-at]], at, [0, 2])]
        assert step(mixed, pools, parts).tobytes() == step(plain, others, parts).tobytes(), at
        assert known(mixed) == (at > programs.CALLS_BEFORE)


def test_experts_that_are_stored_differently_are_called_one_by_one():
    mixed = decoder(experts=Experts(3, 2, 32), hidden_size=64, intermediate_size=96, head_dim=16)
    weights = dict(mixed.weights)
    name = "layers.0.experts.1.up.weight"
    weights[name] = quantize(weights[name], "q8_0")
    mixed = Decoder(mixed.config, weights)
    pools = mixed.new_pools(2)
    for at in range(5):
        assert numpy.isfinite(step(mixed, pools, [([IDS[at]], at, [1])])).all()
    assert known(mixed) == 0


def test_a_row_without_a_slot_is_not_written_by_a_program_either():
    model = decoder()
    pools = model.new_pools(2)
    step(model, pools, [(IDS[:4], 0, [1])])
    before = [kept.numpy().copy() for kept in pools[0]]
    numbers = ([IDS[4]], [4], [-1], [0, 1], [[1]], [4], [0])
    made = {
        model(*(tenon.tensor(each, dtype=tenon.int32) for each in numbers), pools).numpy().tobytes()
        for _ in range(5)
    }
    assert len(made) == 1 and known(model) == 1
    assert all((kept.numpy() == old).all() for kept, old in zip(pools[0], before))


def test_threads_record_and_run():
    model = decoder()
    wanted = without_programs(model)
    results = {}

    def run(number):
        pools = model.new_pools(3)
        results[number] = [
            step(model, pools, [([token], at, [2, 0, 1])]) for at, token in enumerate(IDS[:20])
        ]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pools = wanted.new_pools(3)
    for at, token in enumerate(IDS[:20]):
        one = step(wanted, pools, [([token], at, [2, 0, 1])]).tobytes()
        assert all(results[number][at].tobytes() == one for number in range(3))


def in_blocks(format, hidden=64):
    model = decoder(hidden_size=hidden, intermediate_size=96, head_dim=16)
    weights = {
        name: quantize(weight, format) if len(weight.shape) == 2 else weight
        for name, weight in model.weights.items()
    }
    return model.config, weights


@pytest.mark.parametrize("format", ["q8_0", "q4_0"])
def test_activations_of_eight_bits(format):
    made, weights = in_blocks(format)
    exact, fast = Decoder(made, weights), Decoder(made, weights, "int8")
    assert exact.activations == "float" and fast.activations == "int8"
    rows = [step(model, model.new_pools(3), [(IDS, 0, [0, 1, 2])]) for model in (exact, fast)]
    error = numpy.abs(rows[0] - rows[1]).max()
    assert 0 < error < 0.05 * numpy.abs(rows[0]).max()
    # A token alone, as a program, has the bits that it has in the prompt.
    pools = fast.new_pools(3)
    for at, token in enumerate(IDS):
        assert step(fast, pools, [([token], at, [0, 1, 2])])[0].tobytes() == rows[1][at].tobytes()
    assert list(LanguageModel(fast).tokens(IDS[:5], max_tokens=4))


def test_activations_that_are_refused():
    made, weights = in_blocks("q8_0")
    with pytest.raises(
        ValueError, match="expected activations 'float', 'int8' or 'float8', got 'int4'"
    ):
        Decoder(made, weights, "int4")
    with pytest.raises(ValueError, match="weights in blocks, of which this model has none"):
        Decoder(config(), decoder().weights, "int8")
