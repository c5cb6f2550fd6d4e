# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patched models of transformers on the CPU back end do what the plain models do."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import gdn  # noqa: E402
from huggingface_models import REAL, causal_lm, linear_layer, logits, patched  # noqa: E402

pytestmark = pytest.mark.usefixtures("gdn_compile")


@pytest.fixture(scope="module", params=REAL)
def named(request):
    return request.param, causal_lm(request.param)


def close(mine, theirs, limit=2e-5):
    assert (mine - theirs).norm() <= limit * theirs.norm()


def test_prompts_whole_and_in_pieces(named):
    name, model = named
    tokens = torch.randint(2, 128, (2, 70))
    plain = logits(model, tokens)
    with patched(name):
        close(logits(model, tokens), plain)
        close(logits(model, tokens, pieces=(40, 25, 1, 1)), plain)
    close(logits(model, tokens), plain, 0)


def test_padding_on_the_left(named):
    name, model = named
    tokens = torch.randint(2, 128, (2, 40))
    mask = torch.ones_like(tokens)
    tokens[1, :11], mask[1, :11] = 0, 0
    plain = logits(model, tokens, mask=mask)
    with patched(name):
        mine = logits(model, tokens, mask=mask)
    close(mine[0], plain[0])
    close(mine[1, 11:], plain[1, 11:])


def test_packed_documents(named):
    name, model = named
    starts = torch.tensor([0, 9, 42, 46], dtype=torch.int32)
    layer = linear_layer(model)
    x = torch.randn(1, 46, 64)
    with torch.no_grad():
        expected = torch.cat([layer(x[:, a:b]) for a, b in zip(starts, starts[1:])], dim=1)
        with patched(name):
            close(layer(x, cu_seq_lens_q=starts), expected)


def test_generates_the_same_tokens(named):
    name, model = named
    tokens = torch.randint(2, 128, (2, 12))
    options = dict(max_new_tokens=24, do_sample=False)
    plain = model.generate(tokens, **options)
    with patched(name):
        assert torch.equal(model.generate(tokens, **options), plain)


def test_patching_names_what_it_does_not_know():
    with pytest.raises(ValueError, match="model type 'llama'"):
        gdn.patch_transformers("llama")
    assert set(REAL) <= set(gdn.patch_transformers())
    gdn.unpatch_transformers()


def test_gradients_are_refused(named):
    name, model = named
    with patched(name), pytest.raises(RuntimeError, match="no backward"):
        model(torch.randint(2, 128, (1, 8)))
