# SPDX-License-Identifier: Apache-2.0
"""Ways of dividing a step: which there are, what they need, and that the report is what `tenon tune` prints."""

import dataclasses
import json
import textwrap

import pytest
import tenon
import tenon.distributed as dist
from tenon import nn
from tenon.cli import main
from tenon.distributed import ColwiseParallel, RowwiseParallel
from tenon.distributed.planning import Config, Layout, TuningReport
from tenon.distributed.planning.tuner.space import configs_of
from tenon.distributed.planning.tuner.steps import build_step
from tenon.distributed.planning.tuner.worker import load_recipe

WIDTH = 16
MACHINE = dist.Machine(1e9, 1e9, 1e-6, {"world": dist.Link.of(1e8)})
PLAN = {"*.up": ColwiseParallel(), "*.down": RowwiseParallel()}


def block():
    layers = {
        "up": nn.Linear(WIDTH, 4 * WIDTH),
        "act": nn.ReLU(),
        "down": nn.Linear(4 * WIDTH, WIDTH),
    }
    return nn.Sequential(layers)


def recipe(**changes):
    found = dist.Recipe(
        model=lambda layout: nn.Sequential(block(), block()),
        batch=lambda rows, layout: (tenon.ones([rows, WIDTH]), tenon.zeros([rows, WIDTH])),
        loss=nn.functional.mse_loss,
        rows=16,
        tensor_parallel=PLAN,
        units="[01]",
        divides={"tp": 4 * WIDTH},
    )
    return dataclasses.replace(found, **changes)


SPACE = {"microbatches": [1, 2], "schedule": ["1F1B", "ZB-H1"], "recompute": [False]}


@pytest.fixture(scope="module")
def report():
    return dist.tune(recipe(), 2, MACHINE, space=SPACE)


def test_every_way_is_simulated_and_the_fastest_is_first(report):
    ways = {str(each.config) for each in report.candidates}
    assert {"dp=2", "tp=2", "dp=2 zero=3", "pp=2 1F1B m=2", "pp=2 ZB-H1 m=2"} <= ways
    seconds = [each.seconds for each in report.candidates]
    assert seconds == sorted(seconds) and report.best is report.candidates[0]
    by_way = {str(each.config): each for each in report.candidates}
    assert by_way["dp=2 zero=1"].memory < by_way["dp=2"].memory
    assert by_way["pp=2 ZB-H1 m=2"].bubble < by_way["pp=2 1F1B m=2"].bubble
    weights = 2 * 4 * (2 * 4 * WIDTH * WIDTH + 5 * WIDTH)
    assert by_way["dp=2"].sent == weights  # 2 (n - 1) / n


def test_a_pipeline_needs_what_its_rank_keeps(report):
    """Half of the weights, their gradients and state, and activations."""
    by_way = {str(each.config): each for each in report.candidates}
    weights = 2 * 4 * (2 * 4 * WIDTH * WIDTH + 5 * WIDTH)
    piped = by_way["pp=2 1F1B m=2"]
    assert 2 * weights < piped.memory < by_way["dp=2"].memory
    assert (
        piped.sent == 16 * WIDTH * 4
    )  # activations of all rows; the other rank sends their gradients


def test_what_does_not_fit_is_refused_with_its_reason():
    reasons = {reason for _, reason in configs_of(recipe(), 4) if reason}
    assert "the recipe does not say what cp divides" in reasons
    assert "1 micro-batches leave some of 2 stages idle" in reasons
    assert "stages of pipelines keep whole gradients" in reasons
    odd = recipe(divides={"tp": 3}, tensor_parallel=PLAN)
    assert "tp 2 does not divide 3" in {reason for _, reason in configs_of(odd, 2)}
    plain = recipe(tensor_parallel=None, units=None)
    assert "the recipe has no plan of tensor_parallel" in {r for _, r in configs_of(plain, 2)}
    tight = dist.tune(recipe(), 2, MACHINE, memory=1000, space={**SPACE, "pp": [1], "zero": [0]})
    assert not tight.candidates
    assert any("bytes of a rank are more than 1,000" in each.reason for each in tight.refused)
    with pytest.raises(
        ValueError, match="expected a way that can run, got none on 2 ranks: .* bytes of a rank"
    ):
        assert tight.best
    with pytest.raises(ValueError, match="expected a space of dp, tp, .*, got 'depth'"):
        dist.tune(recipe(), 2, MACHINE, space={"depth": [1]})


def test_parts_of_sequences_and_experts_are_ways():
    class Mixture(nn.Module):
        def __init__(self, layout):
            super().__init__()
            experts = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]
            self.layer = dist.MoELayer(
                nn.Linear(WIDTH, 4, bias=False),
                experts,
                k=2,
                process_group=layout.experts or layout.data.part([layout.data.rank]),
                replicas=layout.replicas if layout.experts else layout.data,
            )

        def forward(self, x):
            return self.layer(x)

    class Attention(nn.Module):
        def __init__(self, layout):
            super().__init__()
            self.context, self.project = layout.context, nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            x = self.project(x).reshape([x.shape[0], -1, 4, WIDTH // 4]).transpose(1, 2)
            if self.context is None:
                y = nn.functional.scaled_dot_product_attention(x, x, x)
            else:
                y = self.context.attention(x, x, x)
            return y.transpose(1, 2).reshape([y.shape[0], -1, WIDTH])

    def sequences(rows, layout):
        x = tenon.ones([rows, 8 // layout.config.cp, WIDTH])
        return x, x

    space = {**SPACE, "microbatches": [1], "tp": [1], "pp": [1], "zero": [0]}
    mixture = recipe(model=Mixture, units=None, divides={"ep": 4})
    found = dist.tune(mixture, 2, MACHINE, space={**space, "ep": [2]})
    assert [str(each.config) for each in found.candidates] == ["dp=2 ep=2"], found.refused
    cut = recipe(model=Attention, batch=sequences, units=None, divides={"cp": 8})
    found = dist.tune(cut, 2, MACHINE, space=space)
    assert {str(each.config) for each in found.candidates} == {"dp=2", "cp=2"}, found.refused


@pytest.mark.parametrize(
    "way",
    ["dp=2 zero=1 m=2", "dp=2 zero=2 m=2", "dp=2 zero=3 m=2", "tp=2 recompute", "pp=2 1F1B m=2"],
)
def test_a_way_trains_as_one_rank_does(way):
    """Losses of three steps, of the ranks that are there, beside one process."""
    config = next(c for c, _ in configs_of(recipe(), 2) if str(c) == way)

    def losses(of):
        tenon.manual_seed(0)
        step = build_step(recipe(), of)
        return [float(dist.all_reduce(step().detach().clone(), "mean").item()) for _ in range(3)]

    with dist.local(1) as ranks:
        want = ranks.run(losses, Config(microbatches=config.microbatches))[0]
    with dist.local(2, timeout=60.0) as ranks:
        # Ranks add in another order than one process, in float32.
        assert ranks.run(losses, config)[0] == pytest.approx(want, rel=1e-4)


def test_reports_are_json(report):
    again = TuningReport.from_json(report.to_json())
    assert again.candidates == report.candidates and again.refused == report.refused
    with pytest.raises(ValueError, match="expected JSON of version 1"):
        TuningReport.from_json("{}")
    assert Layout.__doc__


PROGRAM = """
import tenon
import tenon.distributed as dist
from tenon import nn

def recipe():
    return dist.Recipe(
        model=lambda layout: nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)),
        batch=lambda rows, layout: (tenon.ones([rows, 8]), tenon.zeros([rows, 8])),
        loss=nn.functional.mse_loss, rows=8)
"""


def test_the_command(tmp_path, capsys):
    script = tmp_path / "train_small.py"
    script.write_text(textwrap.dedent(PROGRAM))
    MACHINE.save(tmp_path / "machine.json")
    (tmp_path / "space.json").write_text(json.dumps({"microbatches": [1], "zero": [0, 1]}))
    words = ["tune", f"{script}:recipe", "-n", "2", "--machine", str(tmp_path / "machine.json")]
    words += ["--space", str(tmp_path / "space.json")]
    assert main([*words, "--run", "1", "--output", str(tmp_path / "ways.json")]) == 0
    text = capsys.readouterr().out
    assert "best: dp=2" in text and "refused" in text and "measured" in text
    written = TuningReport.from_json((tmp_path / "ways.json").read_text())
    assert written.candidates[0].measured > 0
    assert main([*words[:4], "--input", str(tmp_path / "ways.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] == 2
    for wrong, message in (
        (["--memory", "much"], "expected bytes as 16GB or 500MB, got 'much'"),
        (["--memory", "infGB"], "expected bytes as 16GB or 500MB, got 'infGB'"),
        (["-n", "0"], "expected -n of 1 or more, got 0"),
        (["--run", "-1"], "expected --run of 0 or more, got -1"),
        (["--show", "0"], "expected --show of 1 or more, got 0"),
        (["--input", str(tmp_path / "ways.json")], "expected no --machine with --input"),
    ):
        assert main([*words, *wrong]) == 1
        assert message in capsys.readouterr().err
    assert main([*words[:3], "3", "--input", str(tmp_path / "ways.json")]) == 1
    assert "expected -n 2, as in" in capsys.readouterr().err
    assert main(["tune", f"{script}:recipe", "-n", "64"]) == 1
    assert "expected --machine, as 64 ranks are more than the 8" in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected other of .* to be a dist.Recipe or a function"):
        load_recipe(f"{script}:other")
    with pytest.raises(ValueError, match="expected FILE.py:NAME of a recipe, got 'train_small'"):
        load_recipe("train_small")
