# SPDX-License-Identifier: Apache-2.0
"""A program as users of PyTorch write them: images, a data set of their own, checkpoints, a schedule, evaluation."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split


class Blobs(Dataset):
    def __init__(self, n):
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, 4, (n,), generator=generator)
        self.images = torch.randn(n, 1, 8, 8, generator=generator) * 0.3
        for k in range(4):
            self.images[self.labels == k, 0, 2 * k : 2 * k + 2] += 1.0

    def __len__(self):
        return self.labels.size(0)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, 1, 1)
        self.norm = nn.BatchNorm2d(8)
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(8 * 16, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        x = F.max_pool2d(x, 2)
        x = x.view(x.size(0), -1)
        return F.log_softmax(self.fc(self.dropout(x)), dim=1)


def evaluate(model, loader, device):
    model.eval()
    loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device, non_blocking=True), target.to(device)
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.max(1, keepdim=True)[1]
            correct += pred.eq(target.view_as(pred)).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--checkpoint", default="net.pt")
    args = parser.parse_args()
    torch.manual_seed(0)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    train, test = random_split(Blobs(200), [160, 40], generator=torch.Generator().manual_seed(3))
    loader = DataLoader(train, batch_size=32, shuffle=True, pin_memory=use_cuda, num_workers=0)
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    scaler = torch.cuda.amp.GradScaler(enabled=use_cuda)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for data, target in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device.type, enabled=False):
                loss = F.nll_loss(model(data.to(device)), target.to(device))
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.3f} lr {scheduler.get_last_lr()[0]:.4f}")
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
        args.checkpoint,
    )
    again = Net()
    saved = torch.load(args.checkpoint, map_location=torch.device("cpu"), weights_only=True)
    again.load_state_dict(saved["model"])
    loss, accuracy = evaluate(again, DataLoader(test, batch_size=16), device)
    assert os.path.getsize(args.checkpoint) > 1000 and saved["epoch"] == args.epochs
    print(
        f"accuracy {accuracy:.2f} parameters {sum(p.numel() for p in model.parameters() if p.requires_grad)}"
    )
    assert accuracy > 0.9, (loss, accuracy)


if __name__ == "__main__":
    main()
