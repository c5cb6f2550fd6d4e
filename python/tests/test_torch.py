# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of gdn on torch tensors on the CPU: operators, tracing, gradients. Skipped without torch."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gdn
from gdn import arrays
from gdn import reference as ref

torch = pytest.importorskip("torch")
F = torch.nn.functional

B, T, H, HV, K, V = 2, 40, 2, 4, 32, 16


@pytest.fixture(autouse=True)
def compiler(gdn_compile, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "functions"))
    torch.manual_seed(0)


def inputs(dtype=torch.float32, tokens=T, batch=B):
    q, k = (F.normalize(torch.randn(batch, tokens, H, K), dim=-1).to(dtype) for _ in range(2))
    v = torch.randn(batch, tokens, HV, V).to(dtype)
    return q, k, v, -torch.rand(batch, tokens, HV), torch.rand(batch, tokens, HV)


def expected(q, k, v, g, beta, **options):
    arrays = (x.float().numpy() for x in (q, k, v, g, beta))
    return ref.recurrence(*arrays, state_layout="k_first", **options)


def two_layers(q, k, v, g, beta):
    o, state = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True, use_qk_l2norm_in_kernel=True)
    o2, state = gdn.chunk_kda(
        q, k, v, g[..., None].expand(*g.shape, K), beta, initial_state=state, output_final_state=True
    )
    o3, _ = gdn.chunk_linear_attn(q[:, :, :1].abs(), k[:, :, :1].abs(), v[:, :, :1])
    y, _ = gdn.short_conv(o.flatten(2), torch.ones(HV * V, 4))
    return gdn.gated_rms_norm(gdn.l2norm(o + o2 + o3), y.view_as(o), torch.ones(V)), state


def same(x, y):
    return all(torch.equal(a, b) for a, b in zip(x, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_types(dtype):
    x = inputs(dtype)
    h0 = torch.randn(B, HV, K, V).to(dtype)
    o, state = gdn.chunk_gated_delta_rule(*x, initial_state=h0, output_final_state=True)
    assert o.dtype == dtype and state.dtype == torch.float32
    want, want_state = expected(*x, state=h0.float().numpy())
    arithmetic = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
    ref.check("o", o.float().numpy(), want, "o", arithmetic)
    ref.check("state", state.numpy(), want_state, "state", arithmetic, tokens=False)


def test_bfloat16_state_in_place():
    x = inputs(torch.bfloat16, tokens=1)
    state = torch.randn(B, HV, K, V).bfloat16()
    before = state.clone()
    _, final = gdn.fused_recurrent_gated_delta_rule(*x[:4], beta=x[4], initial_state=state, final_state=state)
    assert final is state
    _, want = expected(*x, state=before.float().numpy())
    ref.check("state", state.float().numpy(), want, "state", "bf16", tokens=False)


def test_compile_without_graph_breaks():
    x = inputs()
    compiled = torch.compile(two_layers, fullgraph=True, backend="aot_eager")
    want = two_layers(*x)
    assert same(compiled(*x), want)
    longer = inputs(tokens=77)
    compiled = torch.compile(two_layers, fullgraph=True, backend="aot_eager", dynamic=True)
    assert same(compiled(*longer), two_layers(*longer))


def test_compile_with_state_in_place():
    def step(q, k, v, g, beta, state):
        return gdn.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, initial_state=state, final_state=state)[0]

    x, state = inputs(tokens=1), torch.randn(B, HV, K, V)
    other = state.clone()
    want = step(*x, state)
    got = torch.compile(step, fullgraph=True, backend="aot_eager")(*x, other)
    assert torch.equal(want, got) and torch.equal(state, other)


class Module(torch.nn.Module):
    def forward(self, q, k, v, g, beta):
        return two_layers(q, k, v, g, beta)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    x = inputs()
    tokens = torch.export.Dim("tokens", min=9, max=4096)
    program = torch.export.export(Module(), x, dynamic_shapes=[{1: tokens}] * 5, strict=strict)
    assert same(program.module()(*x), two_layers(*x))
    longer = inputs(tokens=70)
    assert same(program.module()(*longer), two_layers(*longer))


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = tuple(torch.empty(a.shape, dtype=torch.bfloat16) for a in inputs())
        cu = torch.empty(6, dtype=torch.int64)
        o, state = gdn.chunk_gated_delta_rule(*(a[:1] for a in x), output_final_state=True, cu_seqlens=cu)
        assert o.shape == (1, T, HV, V) and o.dtype == torch.bfloat16
        assert state.shape == (5, HV, K, V) and state.dtype == torch.float32


def test_operators_meet_their_schemas():
    q, k, v, g, beta = inputs()
    out, state = torch.empty_like(v), torch.empty(B, HV, K, V)
    rest = (None, K**-0.5, "log", None, "value", False, False, None, None, "high", None, False, False)
    arguments = (q, k, v, g, None, None, beta, None, None, None, None, None, out, state, *rest)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.gdn.recurrence.default, arguments, test_utils=checks)
    torch.library.opcheck(torch.ops.gdn.l2norm.default, (q, 1e-6, torch.empty_like(q)), test_utils=checks)


@pytest.mark.parametrize("index", range(5))
def test_gradients_are_refused(index):
    x = list(inputs())
    x[index].requires_grad_()
    message = "gdn.recurrence has no backward pass yet, but an input needs a gradient"
    with pytest.raises(RuntimeError, match=message):
        gdn.chunk_gated_delta_rule(*x)
    with pytest.raises(Exception, match="no backward pass|Observed exception"):
        torch.compile(lambda *a: gdn.chunk_gated_delta_rule(*a)[0], fullgraph=True, backend="aot_eager")(*x)
    with torch.no_grad():
        o, _ = gdn.chunk_gated_delta_rule(*x)
        assert not o.requires_grad
    with torch.inference_mode():
        gdn.chunk_gated_delta_rule(*x)


def test_gradients_are_refused_by_the_operator():
    x = inputs()[0].requires_grad_()
    with pytest.raises(RuntimeError, match="gdn.l2norm has no backward pass yet"):
        torch.ops.gdn.l2norm(x, 1e-6, torch.empty_like(x))
    with pytest.raises(RuntimeError, match="gdn.l2norm has no backward pass yet"):
        gdn.l2norm(x)


def test_parameters_without_gradients_work():
    x = inputs()
    A_log, bias = torch.nn.Parameter(torch.zeros(HV)), torch.nn.Parameter(torch.ones(HV))
    with torch.no_grad():
        o, _ = gdn.chunk_gated_delta_rule(*x, use_gate_in_kernel=True, A_log=A_log, dt_bias=bias)
    gate = ref.gate(x[3].numpy(), A_log.detach().numpy(), bias.detach().numpy())
    want, _ = expected(*x[:3], torch.from_numpy(gate).float(), x[4])
    ref.check("o", o.numpy(), want, "o", "f32")


def test_autocast():
    q, k, v, g, beta = inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        o, _ = gdn.chunk_gated_delta_rule(q, k.bfloat16(), v, g, beta)
    want, _ = gdn.chunk_gated_delta_rule(q.bfloat16(), k.bfloat16(), v.bfloat16(), g, beta)
    assert o.dtype == torch.bfloat16 and torch.equal(o, want)


def test_views_equal_contiguous_copies():
    wide = torch.randn(B, T, 2 * H * K + HV * V)
    q, k, v = wide.split([H * K, H * K, HV * V], dim=-1)
    q, k, v = (x.unflatten(-1, (n, -1)) for x, n in ((q, H), (k, H), (v, HV)))
    gates = torch.rand(B, T, 2 * HV)
    g, beta = -gates[..., :HV], gates[..., HV:]
    assert not q.is_contiguous() and not beta.is_contiguous()
    got = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
    want = gdn.chunk_gated_delta_rule(*(x.contiguous() for x in (q, k, v, g, beta)), output_final_state=True)
    assert same(got, want)
    heads_first = torch.randn(B, H, T, K).transpose(1, 2)
    got, _ = gdn.chunk_delta_rule(heads_first, k, v, beta)
    want, _ = gdn.chunk_delta_rule(heads_first.contiguous(), k, v, beta)
    assert torch.equal(got, want)


def test_destinations_must_be_contiguous():
    x = inputs()
    out = torch.empty(B, HV, T, V).transpose(1, 2)
    with pytest.raises(ValueError, match="argument 'o' of shape .* is not contiguous"):
        gdn.chunk_gated_delta_rule(*x, out=out)


def test_devices_and_libraries_must_agree():
    q, k, v, g, beta = inputs()
    with pytest.raises(ValueError, match="beta is on .*meta.*, but q is on torch device cpu"):
        gdn.chunk_gated_delta_rule(q, k, v, g, beta.to("meta"))
    with pytest.raises(ValueError, match=r"beta is on the CPU \(numpy\), but q is on torch device cpu"):
        gdn.chunk_gated_delta_rule(q, k, v, g, beta.numpy())


def test_operators_exist_after_import_in_either_order():
    code = "import {}, {}\nprint(torch.ops.gdn.recurrence)"
    for names in (("torch", "gdn"),):
        environment = {"PYTHONPATH": str(Path(gdn.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-c", code.format(*names)], capture_output=True, text=True, env=environment
        )
        assert "gdn.recurrence" in done.stdout, done.stderr


def test_large_copies_are_told():
    """No copy is hidden: one above 1 MiB warns, so a filter of warnings refuses it."""
    heads_first = torch.randn(1, 4, 1100, 64).transpose(1, 2)
    v, beta = torch.randn(1, 1100, 4, 64), torch.rand(1, 1100, 4)
    with pytest.warns(gdn.CopyWarning, match=r"q of shape \[1, 1100, 4, 64\] .* 1126400 bytes"):
        gdn.chunk_delta_rule(heads_first, v, v, beta)
    wide = torch.randn(1, 1100, 12, 64)
    gates = torch.rand(1, 1100, 8, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gdn.CopyWarning)
        gdn.chunk_kda(wide[:, :, :4], wide[:, :, 4:8], wide[:, :, 8:], -gates[:, :, 4:], beta)
        with pytest.raises(gdn.CopyWarning):
            gdn.chunk_delta_rule(v, v, heads_first, beta)


def test_rows_of_slices():
    """What a kernel takes as it lies, by the distance of tokens in elements; all else is copied."""
    wide = torch.zeros(2, 5, 1024, dtype=torch.bfloat16)
    q, v = wide[..., :256].unflatten(-1, (4, 64)), wide[..., 512:].unflatten(-1, (2, 256))
    assert arrays.row_of(q) == 1024 and arrays.row_of(v) == 1024 and arrays.row_of(wide[..., :96]) == 1024
    assert arrays.row_of(q[:, :1]) == 5 * 1024, "one token of each sequence: their distance counts"
    assert arrays.row_of(q[:1, 1:3]) == 1024
    assert arrays.row_of(torch.zeros(2, 5, 32)[..., 8:16]) == 32, "gates of heads"
    assert arrays.row_of(np.zeros((2, 5, 8, 64), np.float32)[:, :, 4:]) == 512
    assert arrays.row_of(np.zeros((2, 5, 8, 64), np.float32)[:, :, ::-1]) is None
    for copied in (
        q.contiguous(),  # nothing to do
        q[:, 1:3],  # sequences do not follow one another
        q[:, ::2, ..., :],
        q.transpose(1, 2),
        q[..., :32],  # heads have gaps
        wide[..., 4:260].unflatten(-1, (4, 64)),  # not aligned
        wide.flatten()[: 2 * 4 * 1000].view(2, 4, 1000)[..., :192].unflatten(-1, (3, 64)),  # no whole number of heads
    ):
        assert arrays.row_of(copied) is None
