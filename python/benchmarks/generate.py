# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second of a small Qwen3.5 text model of transformers, plain and patched.

    python3 python/benchmarks/generate.py [--batch 16] [--prompt 1024] [--new 64] [--output DIR]

Random weights, the head geometry of Qwen3.5-35B-A3B (16/32 heads of 128), hidden size 2048, four layers of
which three are linear. The plain model uses what transformers finds: FLA where it is installed.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import torch

PYTHON = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests"), str(PYTHON / "benchmarks")]

import gdn  # noqa: E402
import report  # noqa: E402
from huggingface_models import SIZES, causal_lm  # noqa: E402


def speed(model, tokens, new):
    """Prompt tokens per second, and generated tokens per second, of the fastest of three runs behind a first one."""
    prefill, whole = [], []
    for run in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.no_grad():
            model(tokens, use_cache=True, logits_to_keep=1)
        torch.cuda.synchronize()
        middle = time.perf_counter()
        model.generate(tokens, max_new_tokens=new, min_new_tokens=new, do_sample=False)
        torch.cuda.synchronize()
        end = time.perf_counter()
        if run:
            prefill.append(middle - start)
            whole.append(end - middle)
    return tokens.numel() / min(prefill), tokens.shape[0] * (new - 1) / (min(whole) - min(prefill))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("batch", 16), ("prompt", 1024), ("new", 64)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    SIZES.update(hidden_size=2048, intermediate_size=4096, num_attention_heads=16, num_key_value_heads=2, head_dim=128)
    model = causal_lm("qwen3_5", "cuda", torch.bfloat16, key_heads=16, value_heads=32, key=128, value=128)
    tokens = torch.randint(2, 128, (options.batch, options.prompt), device="cuda")
    rule = "FLA" if importlib.util.find_spec("fla") else "torch"
    rows = [(f"plain ({rule})", *speed(model, tokens, options.new))]
    gdn.patch_transformers("qwen3_5")
    rows.append(("patched", *speed(model, tokens, options.new)))
    facts = report.machine()
    lines = [
        report.describe(facts),
        f"Qwen3.5 with 4 layers, batch {options.batch}, prompt {options.prompt}, {options.new} new tokens",
        *(
            f"{label:<16}{prefill:>12.0f} prompt tokens/s{new:>10.0f} generated tokens/s"
            for label, prefill, new in rows
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    sizes = {name: getattr(options, name) for name in ("batch", "prompt", "new")}
    report.save(options.output, "generate", facts, {"sizes": sizes, "rows": rows}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
