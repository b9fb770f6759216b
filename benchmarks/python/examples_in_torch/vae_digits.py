# SPDX-License-Identifier: Apache-2.0
"""The variational autoencoder of examples/vae_digits.py."""

import torch
from torch import distributions as D
from torch import nn


class VAE(nn.Module):
    def __init__(self, latent=8, width=256):
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

    def posterior(self, images):
        code = self.code(self.encoder(images))
        return D.Normal(code[:, : self.latent], torch.exp(code[:, self.latent :]))

    def likelihood(self, code):
        return D.Independent(D.Bernoulli(logits=self.decoder(code), validate_args=False), 1)


def loss_of(model, images, noise):
    posterior = model.posterior(images)
    code = posterior.loc + posterior.scale * noise
    prior = D.Normal(torch.zeros_like(posterior.loc), 1.0)
    divergence = D.kl_divergence(posterior, prior).sum(-1)
    return (divergence - model.likelihood(code).log_prob(images)).mean()
