# SPDX-License-Identifier: Apache-2.0
"""The Trainer of transformers and accelerate's own loop on the device: losses beside those of the CPU."""

import warnings

import pytest
from torch_device_setup import DEVICE, registered, torch

transformers = pytest.importorskip("transformers", exc_type=ImportError)
accelerate = pytest.importorskip("accelerate", exc_type=ImportError)
registered()
from accelerate.state import AcceleratorState, GradientState, PartialState  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    forget()


def forget():
    """accelerate keeps the device of the first of its objects."""
    AcceleratorState._reset_state(True)
    PartialState._reset_state()
    GradientState._reset_state()


def gpt2():
    config = transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=2,
        vocab_size=64,
        n_positions=16,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return transformers.GPT2LMHeadModel(config)


def bert():
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        vocab_size=64,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    return transformers.BertForSequenceClassification(config)


def llama():
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=64,
        max_position_embeddings=16,
    )
    return transformers.LlamaForCausalLM(config)


def examples(model):
    torch.manual_seed(1)
    tokens = torch.randint(0, 64, (40, 12))
    is_classifier = isinstance(model, transformers.BertForSequenceClassification)
    labels = tokens[:, 0] % 3 if is_classifier else tokens
    mask = (torch.arange(12) < torch.randint(4, 13, (40, 1))).long()
    return [
        {"input_ids": t, "attention_mask": m, "labels": label}
        for t, m, label in zip(tokens, mask, labels, strict=True)
    ]


def trained(make, device, folder, monkeypatch, **settings):
    """What a Trainer has logged, and its model."""
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
    forget()
    torch.manual_seed(0)
    model = make()
    arguments = transformers.TrainingArguments(
        str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=2e-3,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        **settings,
    )
    data = examples(model)
    trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data[:8])
    trainer.train()
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    return torch.tensor([float(each) for each in losses]), trainer


@pytest.mark.parametrize("make", [gpt2, bert, llama])
def test_a_trainer_learns_as_on_the_cpu(make, tmp_path, monkeypatch):
    ours, trainer = trained(make, DEVICE, tmp_path / "a", monkeypatch)
    assert trainer.args.device.type == DEVICE and trainer.model.device.type == DEVICE
    measured = trainer.evaluate()["eval_loss"]
    theirs, other = trained(make, "cpu", tmp_path / "b", monkeypatch)
    assert other.model.device.type == "cpu"
    assert len(ours) == 20 and ours[0] != ours[-1]
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=2e-4)
    assert measured == pytest.approx(other.evaluate()["eval_loss"], rel=1e-3)


def test_a_trainer_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    ours, trainer = trained(gpt2, DEVICE, tmp_path, monkeypatch, lr_scheduler_type="constant")
    saved = str(tmp_path / "checkpoint-20")
    trainer._save_checkpoint(trainer.model, trial=None)
    trainer.args.num_train_epochs = 3
    trainer.train(resume_from_checkpoint=saved)
    assert trainer.state.global_step == 30
    with monkeypatch.context() as patch:
        whole, _ = trained(gpt2, DEVICE, tmp_path / "w", patch, lr_scheduler_type="constant")
    torch.testing.assert_close(whole, ours)


def test_the_loop_of_accelerate(monkeypatch):
    found = {}
    for device in (DEVICE, "cpu"):
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
        forget()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        x = torch.randn(24, 4)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, x.square().sum(1, keepdim=True)), batch_size=8
        )
        accelerator = accelerate.Accelerator(gradient_accumulation_steps=2)
        assert accelerator.device.type == device
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        losses = []
        for _ in range(4):
            for inputs, wanted in loader:
                with accelerator.accumulate(model):
                    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
                    accelerator.backward(loss)
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
        found[device] = torch.tensor(losses)
    torch.testing.assert_close(found[DEVICE], found["cpu"], rtol=1e-4, atol=1e-5)
