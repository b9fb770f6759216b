# SPDX-License-Identifier: Apache-2.0
"""The graph networks of examples/graph_network.py, on PyTorch's own operators."""

import torch
import torch.nn.functional as F
from torch import nn


def with_loops(edge_index, n):
    loops = torch.arange(n)
    kept = edge_index[:, edge_index[0] != edge_index[1]]
    return torch.cat([kept, torch.stack([loops, loops])], 1)


class GCNConv(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x, edge_index):
        n = x.shape[0]
        source, target = with_loops(edge_index, n)
        total = torch.zeros(n).index_add_(0, target, torch.ones(len(target)))
        weight = torch.rsqrt(total)[source] * torch.rsqrt(total)[target]
        messages = self.lin(x)[source] * weight.unsqueeze(-1)
        return torch.zeros(n, messages.shape[1]).index_add(0, target, messages) + self.bias


class SAGEConv(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.lin_l = nn.Linear(channels, out_channels)
        self.lin_r = nn.Linear(channels, out_channels, bias=False)

    def forward(self, x, edge_index):
        source, target = edge_index
        total = torch.zeros_like(x).index_add(0, target, x[source])
        count = torch.zeros(len(x)).index_add_(0, target, torch.ones(len(target)))
        return self.lin_l(total / count.clamp(min=1).unsqueeze(-1)) + self.lin_r(x)


class GATConv(nn.Module):
    def __init__(self, channels, out_channels, heads):
        super().__init__()
        self.heads, self.out_channels = heads, out_channels
        self.lin = nn.Linear(channels, heads * out_channels, bias=False)
        self.att_src = nn.Parameter(torch.zeros(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.zeros(1, heads, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x, edge_index):
        n = x.shape[0]
        source, target = with_loops(edge_index, n)
        features = self.lin(x).reshape(n, self.heads, self.out_channels)
        of = (features * self.att_src).sum(-1)
        to = (features * self.att_dst).sum(-1)
        score = F.leaky_relu(of[source] + to[target], 0.2)
        with torch.no_grad():
            at = target.unsqueeze(-1).expand_as(score)
            largest = torch.zeros(n, self.heads).scatter_reduce(
                0, at, score.detach(), "amax", include_self=False
            )
        power = torch.exp(score - largest[target])
        total = torch.zeros(n, self.heads).index_add(0, target, power)
        messages = features[source] * (power / total[target]).unsqueeze(-1)
        out = torch.zeros(n, self.heads, self.out_channels).index_add(0, target, messages)
        return out.mean(1) + self.bias


class GCN(nn.Module):
    def __init__(self, channels, hidden, classes):
        super().__init__()
        self.conv1 = GCNConv(channels, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        return self.conv2(F.relu(self.conv1(x, edge_index)), edge_index)


class SampledNetwork(nn.Module):
    def __init__(self, channels, hidden, classes):
        super().__init__()
        self.conv1 = SAGEConv(channels, hidden)
        self.conv2 = GATConv(hidden, classes, heads=2)

    def forward(self, x, edge_index):
        return self.conv2(F.relu(self.conv1(x, edge_index)), edge_index)


def loss_of(model, x, edge_index, known, y):
    return F.cross_entropy(model(x, edge_index)[known], y)
