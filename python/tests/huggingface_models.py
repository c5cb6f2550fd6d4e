# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small random models of transformers, and what a patched one must do as the plain one does."""

import contextlib

import torch

import gdn

SIZES = dict(
    vocab_size=128,
    hidden_size=64,
    intermediate_size=96,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    max_position_embeddings=2048,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
)
LINEAR = dict(linear_conv_kernel_dim=4)


def heads(key_heads, value_heads, key, value):
    return dict(
        linear_num_key_heads=key_heads,
        linear_num_value_heads=value_heads,
        linear_key_head_dim=key,
        linear_value_head_dim=value,
    )


# Head geometry of the released models: key heads, value heads, K, V.
REAL = {
    "qwen3_next": (16, 32, 128, 128),
    "qwen3_5": (16, 32, 128, 128),
    "qwen3_5_moe": (16, 32, 128, 128),
    "olmo_hybrid": (30, 30, 96, 192),
    "kimi_linear": (32, 32, 128, 128),
}


def config(name, key_heads=1, value_heads=2, key=16, value=16, layers=4):
    import transformers as hf

    kinds = ["linear_attention"] * (layers - 1) + ["full_attention"]
    # All experts of each token: a choice among them would jump where the inputs differ by a rounding.
    moe = dict(num_experts=4, num_experts_per_tok=4, moe_intermediate_size=32, shared_expert_intermediate_size=32)
    gated = {**SIZES, **LINEAR, **heads(key_heads, value_heads, key, value), "num_hidden_layers": layers}
    if name == "qwen3_next":
        return hf.Qwen3NextConfig(**gated, **moe, layer_types=kinds)
    if name == "qwen3_5":
        return hf.Qwen3_5TextConfig(**gated, layer_types=kinds)
    if name == "qwen3_5_moe":
        return hf.Qwen3_5MoeTextConfig(**gated, **moe, layer_types=kinds)
    if name == "kimi_linear":
        return kimi_config(value_heads, value, kinds, moe)
    if name == "olmo_hybrid":
        return hf.OlmoHybridConfig(**{**gated, "linear_num_key_heads": value_heads}, layer_types=kinds)
    raise ValueError(name)


def kimi_config(num_heads, size, kinds, moe):
    import transformers as hf

    attention = dict(kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16)
    experts = dict(num_local_experts=4, num_experts_per_tok=4, moe_intermediate_size=32, n_group=1, topk_group=1)
    own = {**{k: v for k, v in SIZES.items() if k != "head_dim"}, **attention, **experts}
    own.update(num_key_value_heads=2, linear_num_heads=num_heads, linear_head_dim=size, linear_conv_kernel_dim=4)
    return hf.KimiLinearConfig(**own, num_hidden_layers=len(kinds), layer_types=kinds)


def causal_lm(name, device="cpu", dtype=None, seed=0, **sizes):
    """A random causal language model in evaluation mode."""
    import transformers as hf

    torch.manual_seed(seed)
    model = hf.AutoModelForCausalLM.from_config(config(name, **sizes))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.08)
    return model.to(device=device, dtype=dtype or torch.float32).eval()


def linear_layer(model):
    """The first layer of a model that patching replaces."""
    return next(m for m in model.modules() if type(m).__name__.endswith(("GatedDeltaNet", "DeltaAttention")))


@contextlib.contextmanager
def patched(name):
    gdn.patch_transformers(name)
    try:
        yield
    finally:
        gdn.unpatch_transformers()


def logits(model, tokens, pieces=(), mask=None):
    """Logits of the prompt fed in pieces (of those many tokens, then the rest), through a cache if any."""
    with torch.no_grad():
        if not pieces:
            return model(tokens, attention_mask=mask, use_cache=False).logits
        cache, parts, start = None, [], 0
        for size in (*pieces, tokens.shape[1] - sum(pieces)):
            result = model(tokens[:, start : start + size], past_key_values=cache, use_cache=True)
            cache, start = result.past_key_values, start + size
            parts.append(result.logits)
        return torch.cat(parts, dim=1)
