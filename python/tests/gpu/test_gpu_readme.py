# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python examples of README.md run as they stand, on a device; only weights and a tokenizer are not fetched."""

import re
from pathlib import Path

import pytest

import gdn
from gpu_support import COMPILE_ONLY, DEVICE, Lazy

pytestmark = pytest.mark.skipif(bool(COMPILE_ONLY), reason="these tests call the compiler where they run")
torch = Lazy("torch")
README = Path(__file__).resolve().parents[3] / "README.md"


def example(start):
    """The indented block with a line that starts so."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", README.read_text(), re.M)
    (block,) = [block for block in blocks if re.search(rf"^    {re.escape(start)}", block, re.M)]
    return re.sub(r"^    ", "", block, flags=re.M)


def run(start, **names):
    exec(compile(example(start), f"README.md: {start}", "exec"), names)
    torch.cuda.synchronize()
    return names


def test_functions():
    names = run("q, k = (torch.randn(1, 8192")
    assert names["o"].shape == (1, 8192, 32, 128) and names["y"].isfinite().all()
    x = {name: names[name][:, :4].contiguous() for name in "qkv"}
    x["g"], x["gk"] = (-torch.rand(1, 4, *heads, device=DEVICE) for heads in ((32,), (32, 128)))
    x["beta"], x["alpha"] = torch.rand(1, 4, 32, device=DEVICE), x["g"].exp()
    x["pool"], x["state"] = (torch.zeros(N, 32, 128, 128, device=DEVICE) for N in (5, 1))
    x["out"], x["final"] = torch.empty_like(x["v"]), torch.empty_like(x["state"])
    x["slots"], x["starts"] = torch.tensor([3], device=DEVICE), torch.tensor([0, 3, 4], device=DEVICE)
    run("o, pool = ", gdn=gdn, torch=torch, **x)
    assert x["pool"][3].any() and not x["pool"][0].any() and not x["state"].any()


def test_mixers():
    x, drafts = (torch.randn(4, tokens, 2048, device=DEVICE, dtype=torch.bfloat16) for tokens in (1001, 4))
    packed, starts = x[:1], torch.tensor([0, 400, 1001], device=DEVICE)
    names = run("mixer = nn.GatedDeltaNet", x=x, drafts=drafts, packed=packed, starts=starts, torch=torch)
    assert names["y"].shape == packed.shape and names["y"].isfinite().all()


def test_patched_models():
    transformers = pytest.importorskip("transformers")
    from huggingface_models import causal_lm

    tokens = torch.randint(2, 128, (1, 50), device=DEVICE)
    model = causal_lm("qwen3_5", DEVICE, torch.bfloat16, key_heads=16, value_heads=32, key=128, value=128)

    class Tokens(dict):
        to = lambda self, device: self  # noqa: E731

    try:
        source = example("gdn.patch_transformers()").replace(
            'transformers.AutoModelForCausalLM.from_pretrained("Qwen/Qwen3.5-0.8B")', "model"
        )
        tokenizer = lambda *text, **options: Tokens(input_ids=tokens)  # noqa: E731
        exec(source, {"model": model, "tokenizer": tokenizer, "transformers": transformers})
    finally:
        gdn.unpatch_transformers()
