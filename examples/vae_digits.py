# SPDX-License-Identifier: Apache-2.0
"""Train a variational autoencoder (Kingma and Welling, 2014) on handwritten digits.

    python vae_digits.py
    python vae_digits.py --quick

The encoder yields a normal distribution over 8 numbers for each image of 8 x 8 pixels, the decoder
the probability of ink for each pixel. Training maximises the evidence lower bound: the expected
logarithm of the likelihood less the divergence from the standard normal distribution. At the end
digits are drawn from that, and printed. The exit status is 1 if the bound on images that were not
seen stays below -25 nats (-45 with --quick, which takes seconds).
"""

from __future__ import annotations

import argparse
import sys

import tenon
from tenon import Tensor, nn
from tenon import distributions as D
from tenon.data import DataLoader, TensorDataset, random_split
from tenon.optim import Adam
from tenon.utils import progress
from tenon.vision.datasets import Digits

SHADES = " .:-=+*#%@"


class VAE(nn.Module):
    """Images [n, 64] to distributions of codes [n, latent], and codes to distributions of
    images."""

    def __init__(self, latent: int = 8, width: int = 256) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.code = nn.Linear(width, 2 * latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 64),
        )
        self.latent = latent

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Means and logarithms of standard deviations."""
        code = self.code(self.encoder(images))
        return code[:, : self.latent], code[:, self.latent :]

    def posterior(self, images: Tensor) -> D.Normal:
        mean, log_scale = self.encode(images)
        return D.Normal(mean, tenon.exp(log_scale))

    def likelihood(self, code: Tensor) -> D.Independent:
        # Shades of grey count as probabilities of ink, so that values between 0 and 1 are allowed.
        return D.Independent(D.Bernoulli(logits=self.decoder(code), validate_args=False), 1)


def loss_of(model: VAE, images: Tensor, noise: Tensor) -> Tensor:
    """The mean over images of the negative evidence lower bound, in nats. `noise` [n, latent] is of
    the standard normal distribution; scaled and moved it is a code of each image."""
    posterior = model.posterior(images)
    code = posterior.loc + posterior.scale * noise
    prior = D.Normal(tenon.zeros_like(posterior.loc), 1.0)
    divergence = D.kl_divergence(posterior, prior).sum(axis=-1)
    return (divergence - model.likelihood(code).log_prob(images)).mean()


def random_loss(model: VAE, images: Tensor) -> Tensor:
    """loss_of() for codes that are drawn anew."""
    noise = tenon.normal([images.shape[0], model.latent], device=images.device)
    return loss_of(model, images, noise)


def picture(rows: list[list[float]]) -> str:
    return "\n".join(
        "".join(2 * SHADES[min(int(v * len(SHADES)), len(SHADES) - 1)] for v in row) for row in rows
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="three epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 3
    tenon.manual_seed(options.seed)
    dataset = TensorDataset(Digits().data.flatten(1))
    training, held_out = random_split(dataset, [0.8, 0.2], seed=options.seed)
    model = VAE().to(options.device)
    loader = DataLoader(training, batch_size=64, shuffle=True, seed=options.seed)
    optimizer = Adam(model.parameters(), lr=2e-3)
    bar = progress(range(options.epochs), "training")
    for _ in bar:
        for (images,) in loader:
            loss = random_loss(model, images.to(options.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        bar.update(loss=loss.item())
    model.eval()
    with tenon.no_grad():
        images = tenon.stack([row for (row,) in held_out]).to(options.device)
        bound = -tenon.stack([random_loss(model, images) for _ in range(10)]).mean().item()
        codes = tenon.normal([6, model.latent], device=options.device)
        drawn = model.likelihood(codes).mean.reshape([6, 8, 8]).cpu()
    print(f"evidence lower bound on {len(held_out)} images: {bound:.2f} nats")
    print(picture(tenon.concat(list(drawn), 1).tolist()))
    return 0 if bound >= (-45 if options.quick else -25) else 1


if __name__ == "__main__":
    sys.exit(main())
