# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two small layers that show the delta rule, DeltaNet and Gated DeltaNet, on gdn's kernels.

    S_t = alpha_t S_{t-1} - beta_t (alpha_t S_{t-1} k_t - v_t) k_t^T        alpha_t = 1 in DeltaNet
    o_t = S_t q_t

What a layer stores is corrected by its error: S k is what the memory holds for the key k, v what it
should hold. `reference` is this recurrence, token by token in torch; the layers compute the same by one
call of gdn. Run the file to compare them:

    python3 examples/teaching_layers.py
"""

import gdn
import torch
from torch import nn
from torch.nn import functional as F


def reference(q, k, v, alpha, beta, state):
    """The recurrence in the type of its inputs: q, k [B, T, H, K], v [B, T, H, V], alpha, beta [B, T, H]."""
    outputs = []
    for t in range(q.shape[1]):
        state = alpha[:, t, :, None, None] * state
        error = torch.einsum("bhvk,bhk->bhv", state, k[:, t]) - v[:, t]
        state = state - beta[:, t, :, None, None] * error[..., None] * k[:, t, :, None, :]
        outputs.append(torch.einsum("bhvk,bhk->bhv", state, q[:, t]))
    return torch.stack(outputs, dim=1), state


class DeltaLayer(nn.Module):
    """x + W_o o, normalised; q and k have length 1, keys are weighted by their own short convolution."""

    gated = False

    def __init__(self, width, heads=4, key_size=None, value_size=None, taps=4):
        super().__init__()
        self.heads = heads
        self.key_size, self.value_size = key_size or width // heads, value_size or width // heads
        keys, values = heads * self.key_size, heads * self.value_size
        self.q_proj = nn.Linear(width, keys, bias=False)
        self.k_proj = nn.Linear(width, keys, bias=False)
        self.v_proj = nn.Linear(width, values, bias=False)
        self.beta_proj = nn.Linear(width, heads)
        if self.gated:
            self.gate_proj = nn.Linear(width, heads)
        self.conv = nn.Conv1d(keys, keys, taps, groups=keys)
        self.o_proj = nn.Linear(values, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def inputs(self, x):
        """q, k, v, alpha (None without a gate) and beta of the recurrence."""
        k = self.k_proj(x)
        convolved, _ = gdn.short_conv(k, self.conv.weight[:, 0], self.conv.bias, activation="silu")
        q, k = (y.unflatten(-1, (self.heads, self.key_size)) for y in (self.q_proj(x), k * convolved))
        v = self.v_proj(x).unflatten(-1, (self.heads, self.value_size))
        alpha = torch.sigmoid(self.gate_proj(x)) if self.gated else None
        beta = torch.sigmoid(self.beta_proj(x)).clamp(min=0.01)
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, alpha, beta

    def rule(self, q, k, v, alpha, beta, state):
        form = "linear" if self.gated else "log"
        return gdn.recurrence(q, k, v, alpha, beta, gate_form=form, scale=1.0, initial_state=state)

    def forward(self, x, state=None):
        """[B, T, width] and the state [B, H, V, K] to the same."""
        o, state = self.rule(*self.inputs(x), state)
        return self.norm(x + self.o_proj(o.flatten(-2))), state


class GatedDeltaLayer(DeltaLayer):
    """As DeltaLayer, and the memory fades by alpha = sigmoid(W x) before each correction."""

    gated = True


def compare(layer, tokens=100, width=64):
    """Largest difference of output and state between the kernels and the recurrence, and their sizes."""
    x = torch.randn(2, tokens, width)
    q, k, v, alpha, beta = layer.inputs(x)
    state = torch.randn(2, layer.heads, layer.value_size, layer.key_size)
    o, final = layer.rule(q, k, v, alpha, beta, state)
    alpha = torch.ones_like(beta) if alpha is None else alpha
    exact = reference(*(y.double() for y in (q, k, v, alpha, beta, state)))
    return [((mine - theirs).norm() / theirs.norm()).item() for mine, theirs in zip((o, final), exact)]


if __name__ == "__main__":
    torch.manual_seed(0)
    with torch.no_grad():
        for kind in (DeltaLayer, GatedDeltaLayer):
            o, state = compare(kind(64, key_size=24))
            print(f"{kind.__name__:<16} relative difference: o {o:.1e}, state {state:.1e}")
