# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of gdn on numpy arrays, run on the CPU, against the float64 definitions."""

import functools
import inspect

import numpy as np
import pytest

import gdn
from gdn import reference as ref

B, H, HV, K, V = 2, 2, 4, 24, 12


@pytest.fixture(autouse=True)
def compiler(gdn_compile, tmp_path_factory, monkeypatch):
    """The kernels of this module are compiled once."""
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "functions"))


def f32(x):
    return np.ascontiguousarray(x, np.float32)


class Inputs:
    """Random arrays of one problem; `starts` packs sequences into one row."""

    def __init__(self, T, starts=None, batch=B, heads=H, value_heads=HV, seed=0):
        self.rng = np.random.default_rng(seed)
        self.starts = starts
        self.batch, self.T = (1 if starts else batch), T
        self.N = len(starts) - 1 if starts else self.batch
        self.heads, self.value_heads = heads, value_heads
        self.q, self.k = self.unit(heads), self.unit(heads)
        self.v = self.normal(value_heads, V)

    def normal(self, *tail):
        return f32(self.rng.standard_normal((self.batch, self.T, *tail)))

    def unit(self, heads):
        return f32(ref.l2norm(self.normal(heads, K)))

    def uniform(self, *tail):
        return f32(self.rng.random((self.batch, self.T, *tail)))

    def state(self, v_first=False):
        matrix = (V, K) if v_first else (K, V)
        return f32(self.rng.standard_normal((self.N, self.value_heads, *matrix)))

    @property
    def cu(self):
        return None if self.starts is None else np.array(self.starts, np.int64)

    def expected(self, v_first=False, q=None, k=None, **options):
        layout = "v_first" if v_first else "k_first"
        return ref.recurrence(
            self.q if q is None else q,
            self.k if k is None else k,
            self.v,
            offsets=self.starts,
            state_layout=layout,
            **options,
        )


PROBLEMS = {
    "chunks": lambda: Inputs(37),
    "step": lambda: Inputs(1, batch=3),
    "packed": lambda: Inputs(41, [0, 0, 5, 40, 41]),
}


def check(name, got, expected, arithmetic="f32"):
    (o, state), (want_o, want_state) = got, expected
    ref.check(f"{name}: o", o, want_o, "o", arithmetic)
    ref.check(f"{name}: state", state, want_state, "state", arithmetic, tokens=False)


@pytest.fixture(params=PROBLEMS)
def x(request):
    return PROBLEMS[request.param]()


def test_gated_delta_rule(x):
    g, beta, h0 = -x.uniform(HV), x.uniform(HV), x.state()
    options = {"initial_state": h0, "output_final_state": True, "cu_seqlens": x.cu}
    expected = x.expected(gate=g, beta=beta, state=h0)
    check("chunk", gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta, **options), expected)
    check("recurrent", gdn.fused_recurrent_gated_delta_rule(x.q, x.k, x.v, g, beta=beta, **options), expected)


def test_gated_delta_rule_with_everything_in_the_kernel(x):
    a, logits, h0 = x.normal(HV), x.normal(HV), x.state(v_first=True)
    A_log, dt_bias = f32(x.rng.standard_normal(HV)), f32(x.rng.standard_normal(HV))
    o, state = gdn.chunk_gated_delta_rule(
        3 * x.q,
        3 * x.k,
        x.v,
        a,
        logits,
        scale=0.5,
        initial_state=h0,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
        use_beta_sigmoid_in_kernel=True,
        allow_neg_eigval=True,
        state_v_first=True,
        cu_seqlens=x.cu,
        cu_seqlens_cpu=x.starts,
        use_gate_in_kernel=True,
        A_log=A_log,
        dt_bias=dt_bias,
    )
    expected = x.expected(
        v_first=True,
        q=ref.l2norm(3 * x.q),
        k=ref.l2norm(3 * x.k),
        gate=ref.gate(a, A_log, dt_bias),
        beta=2 * ref.sigmoid(logits),
        state=h0,
        scale=0.5,
    )
    check("all", (o, state), expected)


def test_delta_rule(x):
    beta, h0 = x.uniform(HV), x.state()
    options = {"initial_state": h0, "output_final_state": True, "cu_seqlens": x.cu}
    check("chunk", gdn.chunk_delta_rule(x.q, x.k, x.v, beta, **options), x.expected(beta=beta, state=h0))
    one = np.ones((x.batch, x.T, HV))
    check("beta 1", gdn.fused_recurrent_delta_rule(x.q, x.k, x.v, **options), x.expected(beta=one, state=h0))


def test_kda(x):
    a, beta = x.normal(HV, K), x.uniform(HV)
    bias = f32(x.rng.standard_normal(HV * K))
    o, state = gdn.chunk_kda(
        x.q,
        x.k,
        x.v,
        a,
        beta,
        output_final_state=True,
        use_gate_in_kernel=True,
        safe_gate=True,
        lower_bound=-4.0,
        dt_bias=bias,
        cu_seqlens=x.cu,
    )
    gate = ref.gate(a, np.zeros(HV), bias.reshape(HV, K), -4.0)
    check("bounded", (o, state), x.expected(gate=gate, beta=beta))
    g = -x.uniform(HV, K)
    got = gdn.fused_recurrent_kda(x.q, x.k, x.v, g, beta, output_final_state=True, cu_seqlens=x.cu)
    check("log", got, x.expected(gate=g, beta=beta))


def test_gdn2(x):
    g, b, w, h0 = -x.uniform(HV, K), x.uniform(HV, K), x.uniform(HV, V), x.state()
    options = {"initial_state": h0, "output_final_state": True, "cu_seqlens": x.cu}
    expected = x.expected(gate=g, erase=b, write=w, state=h0)
    check("chunk", gdn.chunk_gdn2(x.q, x.k, x.v, g, b, w, **options), expected)
    check("recurrent", gdn.fused_recurrent_gdn2(x.q, x.k, x.v, g, b, w, **options), expected)


def test_simple_gla(x):
    g, h0 = -x.uniform(HV), x.state()
    options = {"initial_state": h0, "output_final_state": True, "cu_seqlens": x.cu}
    check("g", gdn.chunk_simple_gla(x.q, x.k, x.v, g, **options), x.expected(gate=g, state=h0))
    gamma = f32(-np.linspace(0.1, 1, HV))
    all_tokens = np.broadcast_to(gamma, (x.batch, x.T, HV))
    got = gdn.fused_recurrent_simple_gla(x.q, x.k, x.v, g_gamma=gamma, **options)
    check("g_gamma", got, x.expected(gate=all_tokens, state=h0))
    check("none", gdn.chunk_simple_gla(x.q, x.k, x.v, **options), x.expected(state=h0))


def test_gla(x):
    g = -x.uniform(HV, K)
    got = gdn.chunk_gla(x.q, x.k, x.v, g, output_final_state=True, cu_seqlens=x.cu)
    check("gla", got, x.expected(gate=g))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_linear_attn(problem):
    x = PROBLEMS[problem]()
    x = Inputs(x.T, x.starts, x.batch, H, H)
    x.q, x.k = np.abs(x.q), np.abs(x.k)
    h0 = x.state()
    options = {"output_final_state": True, "cu_seqlens": x.cu}
    plain, final = gdn.chunk_linear_attn(x.q, x.k, x.v, initial_state=h0, normalize=False, **options)
    want, want_state = x.expected(state=h0)
    check("plain", (plain, final), (want, want_state))
    z0 = f32(x.rng.random((x.N, 1, H, K)))
    o, (state, z) = gdn.chunk_linear_attn(x.q, x.k, x.v, initial_state=(h0, z0), **options)
    below, sums = ref.recurrence(x.q, x.k, np.ones_like(x.v[..., :1]), offsets=x.starts, state=z0.reshape(x.N, H, 1, K))
    check("normalised", (o, state), (want / (below + 1e-10), want_state))
    ref.check("sum of keys", z, sums.reshape(x.N, 1, H, K), "state", "f32", tokens=False)


def test_linear_gates():
    x = Inputs(37)
    alpha, beta = x.uniform(HV), x.uniform(HV)
    alpha[0, 3], alpha[0, 5] = 0.0, 1.0
    alpha[1] = 1 - 1e-5 * alpha[1]
    with np.errstate(divide="ignore"):
        gate = np.log(alpha.astype(np.float64))
    got = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, alpha, beta, output_final_state=True, linear_gate=True)
    check("alpha", got, x.expected(gate=gate, beta=beta))


def test_half_precision_inputs_and_states():
    x = Inputs(37)
    q, k, v = (a.astype(np.float16) for a in (x.q, x.k, x.v))
    g, beta, h0 = -x.uniform(HV).astype(np.float16), x.uniform(HV).astype(np.float16), x.state().astype(np.float16)
    o, state = gdn.chunk_gated_delta_rule(q, k, v, g, beta, initial_state=h0, output_final_state=True)
    assert o.dtype == np.float16 and state.dtype == np.float32
    x.q, x.k, x.v = q, k, v
    check("f16", (o, state), x.expected(gate=g, beta=beta, state=h0), "f16")


def test_destinations_and_states_in_place():
    x = Inputs(37)
    g, beta, h0 = -x.uniform(HV), x.uniform(HV), x.state()
    expected = x.expected(gate=g, beta=beta, state=h0)
    out, final = np.full_like(x.v, np.nan), np.full_like(h0, np.nan)
    before = h0.copy()
    o, state = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta, initial_state=h0, out=out, final_state=final)
    assert o is out and state is final and np.array_equal(h0, before)
    check("destinations", (o, state), expected)
    o, state = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta, initial_state=h0, final_state=h0)
    assert state is h0
    check("in place", (o, state), expected)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_pool_of_states(problem):
    x = PROBLEMS[problem]()
    g, beta = -x.uniform(HV), x.uniform(HV)
    pool = f32(x.rng.standard_normal((9, HV, K, V)))
    slots = np.array([7, -1, 2, 4][: x.N], np.int32)
    start = np.stack([pool[slot] if slot >= 0 else 0 * pool[0] for slot in slots])
    want_o, want_state = x.expected(gate=g, beta=beta, state=start)
    rows = x.starts or [n * x.T for n in range(x.N + 1)]
    flat = want_o.reshape(-1, HV, V)
    want_pool = pool.copy()
    for n, slot in enumerate(slots):
        if slot < 0:
            flat[rows[n] : rows[n + 1]] = 0
        else:
            want_pool[slot] = want_state[n]
    untouched = [entry for entry in range(9) if entry not in slots]
    before = pool[untouched].copy()
    o, final = gdn.chunk_gated_delta_rule(
        x.q, x.k, x.v, g, beta, initial_state=pool, state_indices=slots, cu_seqlens=x.cu
    )
    assert final is pool and np.array_equal(pool[untouched], before)
    check("pool", (o, final), (want_o, want_pool))


def test_verify_gives_the_state_after_each_token_and_keeps_the_first():
    x = Inputs(4, batch=3)
    g, beta, h0 = -x.uniform(HV), x.uniform(HV), x.state()
    before = h0.copy()
    o, none, inner = gdn.fused_recurrent_gated_delta_rule(
        x.q, x.k, x.v, g, beta=beta, initial_state=h0, checkpoint_every=1
    )
    assert none is None and np.array_equal(h0, before) and inner.shape == (3, 4, HV, K, V)
    state, outputs = h0, []
    for t in range(4):
        token = [np.ascontiguousarray(a[:, t : t + 1]) for a in (x.q, x.k, x.v, g, beta)]
        y, state = gdn.fused_recurrent_gated_delta_rule(
            *token[:4], beta=token[4], initial_state=state, output_final_state=True
        )
        outputs.append(y)
        assert ref.ratio(inner[:, t], state) < 1e-5
    assert ref.ratio(o, np.concatenate(outputs, 1)) < 1e-5


def test_checkpoints_of_a_prefill():
    x = Inputs(130)
    g, beta = -x.uniform(HV), x.uniform(HV)
    kept = np.full((B, 2, HV, K, V), np.nan, np.float32)
    o, state, inner = gdn.recurrence(x.q, x.k, x.v, g, beta, state_v_first=False, checkpoint_every=64, checkpoints=kept)
    assert inner is kept
    check("whole", (o, state), x.expected(gate=g, beta=beta))
    first = [np.ascontiguousarray(a[:, :128]) for a in (x.q, x.k, x.v, g, beta)]
    _, want = gdn.chunk_gated_delta_rule(*first, output_final_state=True)
    assert ref.ratio(inner[:, 1], want) < 1e-5


@pytest.mark.parametrize("name", ["chunk_gated_delta_rule", "chunk_delta_rule", "chunk_simple_gla", "chunk_kda"])
def test_checkpoints_where_the_caller_wants_them(name):
    x = Inputs(130)
    inputs = {
        "chunk_gated_delta_rule": (-x.uniform(HV), x.uniform(HV)),
        "chunk_delta_rule": (x.uniform(HV),),
        "chunk_simple_gla": (-x.uniform(HV),),
        "chunk_kda": (-x.uniform(HV, K), x.uniform(HV)),
    }[name]
    call = functools.partial(getattr(gdn, name), x.q, x.k, x.v, *inputs, checkpoint_every=64)
    *_, want = call()
    mine = np.full_like(want, np.nan)
    *_, got = call(checkpoints=mine)
    assert got is mine and np.array_equal(mine, want)
    with pytest.raises(ValueError, match="checkpoints is given without"):
        call(checkpoint_every=None, checkpoints=mine)


def test_no_initial_state_is_zeros_and_no_final_state_is_none():
    x = Inputs(37)
    g, beta = -x.uniform(HV), x.uniform(HV)
    zeros = np.zeros_like(x.state())
    o, none = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta)
    assert none is None
    with_zeros, _ = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta, initial_state=zeros)
    assert np.array_equal(o, with_zeros)


def test_views():
    x = Inputs(37)
    g, beta = -x.uniform(HV), x.uniform(HV)
    wide = np.concatenate([x.q, x.k, x.v[..., :K] if V >= K else np.zeros_like(x.q)], axis=2)
    q, k = wide[:, :, :H], wide[:, :, H : 2 * H]
    assert not q.flags.c_contiguous
    want, _ = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta)
    got, _ = gdn.chunk_gated_delta_rule(q, k, x.v, g, beta)
    assert np.array_equal(want, got)


def test_no_tokens():
    x = Inputs(0)
    h0 = x.state()
    o, state = gdn.chunk_gated_delta_rule(
        x.q, x.k, x.v, x.uniform(HV), x.uniform(HV), initial_state=h0, output_final_state=True
    )
    assert o.shape == (B, 0, HV, V) and np.array_equal(state, h0)


def test_chunk_sizes_agree():
    x = Inputs(70)
    g, beta = -x.uniform(HV), x.uniform(HV)
    expected = x.expected(gate=g, beta=beta)
    for size in (16, 32, 64):
        got = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta, output_final_state=True, chunk_size=size)
        check(f"chunk {size}", got, expected)


def test_parts_of_a_mixer():
    rng = np.random.default_rng(1)
    x = f32(rng.standard_normal((2, 9, 3, 20)))
    z, w = f32(rng.standard_normal(x.shape)), f32(rng.standard_normal(20))
    assert ref.ratio(gdn.l2norm(x, 1e-5), ref.l2norm(x, 1e-5)) < 1e-6
    for activation in ("silu", "sigmoid", "none"):
        got = gdn.gated_rms_norm(x, z, w, 1e-5, activation)
        assert ref.ratio(got, ref.gated_rms_norm(x, z, w, 1e-5, activation)) < 1e-6
    A_log, bias = rng.standard_normal(3).astype(np.float16), f32(rng.standard_normal((3, 20)))
    assert ref.ratio(gdn.gate(x, A_log, bias, -2.0), ref.gate(x, A_log, bias, -2.0)) < 1e-6
    assert ref.ratio(gdn.gate(x[..., 0], A_log), ref.gate(x[..., 0], A_log)) < 1e-6


@pytest.mark.parametrize("kept", [3, 4])
@pytest.mark.parametrize("starts", [None, [0, 0, 2, 18]])
def test_short_conv(kept, starts):
    rng = np.random.default_rng(2)
    batch, N = (1, 3) if starts else (2, 2)
    x = f32(rng.standard_normal((batch, 18, 10)))
    w, bias, state = f32(rng.standard_normal((10, 4))), f32(rng.standard_normal(10)), rng.standard_normal((N, 10, kept))
    state = f32(state)
    cu = None if starts is None else np.array(starts, np.int32)
    want, want_state = ref.short_conv(x, w, bias, starts, state, "silu")
    y, final = gdn.short_conv(x, w, bias, initial_state=state, output_final_state=True, cu_seqlens=cu)
    assert ref.ratio(y, want) < 1e-6 and np.array_equal(final, f32(want_state))
    y, final = gdn.short_conv(x, w, bias, initial_state=state, final_state=state, cu_seqlens=cu)
    assert final is state and ref.ratio(y, want) < 1e-6 and np.array_equal(final, f32(want_state))
    y, none = gdn.short_conv(x, w, activation="none", cu_seqlens=cu)
    assert none is None and ref.ratio(y, ref.short_conv(x, w, None, starts)[0]) < 1e-6


class Foreign:
    """An array that offers DLPack and nothing else that numpy knows."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_by_dlpack():
    x = Inputs(37)
    g, beta = -x.uniform(HV), x.uniform(HV)
    want, _ = gdn.chunk_gated_delta_rule(x.q, x.k, x.v, g, beta)
    got, _ = gdn.chunk_gated_delta_rule(*(Foreign(a) for a in (x.q, x.k, x.v, g, beta)))
    assert isinstance(got, np.ndarray) and np.array_equal(want, got)


# Signatures of FLA 0.6.0: arguments in order; behind `/` those that it takes through **kwargs.
FLA = {
    "chunk_gated_delta_rule": "q k v g beta scale initial_state output_final_state use_qk_l2norm_in_kernel "
    "use_beta_sigmoid_in_kernel allow_neg_eigval state_v_first cu_seqlens cu_seqlens_cpu chunk_indices cp_context / "
    "use_gate_in_kernel A_log dt_bias chunk_size transpose_state_layout head_first",
    "fused_recurrent_gated_delta_rule": "q k v g gk gv beta scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel use_gate_in_kernel A_log dt_bias use_beta_sigmoid_in_kernel allow_neg_eigval "
    "state_v_first cu_seqlens / transpose_state_layout",
    "chunk_delta_rule": "q k v beta scale initial_state output_final_state use_qk_l2norm_in_kernel cu_seqlens "
    "cu_seqlens_cpu / chunk_size head_first",
    "fused_recurrent_delta_rule": "q k v beta scale initial_state output_final_state use_qk_l2norm_in_kernel "
    "cu_seqlens /",
    "chunk_kda": "q k v g beta scale initial_state output_final_state use_qk_l2norm_in_kernel use_gate_in_kernel "
    "use_beta_sigmoid_in_kernel allow_neg_eigval safe_gate lower_bound disable_recompute return_intermediate_states "
    "state_v_first cu_seqlens cu_seqlens_cpu cp_context use_graph max_num_seqs / A_log dt_bias chunk_size "
    "transpose_state_layout",
    "fused_recurrent_kda": "q k v g beta A_log dt_bias scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel use_gate_in_kernel use_beta_sigmoid_in_kernel allow_neg_eigval lower_bound "
    "state_v_first cu_seqlens / transpose_state_layout",
    "chunk_simple_gla": "q k v g g_gamma scale initial_state output_final_state state_v_first cu_seqlens "
    "cu_seqlens_cpu / chunk_size head_first",
    "fused_recurrent_simple_gla": "q k v g g_gamma scale initial_state output_final_state reverse state_v_first "
    "cu_seqlens / transpose_state_layout",
    "chunk_gla": "q k v g scale initial_state output_final_state state_v_first cu_seqlens cu_seqlens_cpu /",
    "chunk_linear_attn": "q k v scale initial_state output_final_state normalize cu_seqlens /",
    "chunk_gdn2": "q k v g b w scale initial_state output_final_state use_qk_l2norm_in_kernel use_gate_in_kernel "
    "cu_seqlens cu_seqlens_cpu safe_gate lower_bound disable_recompute return_intermediate_states state_v_first "
    "cp_context / A_log dt_bias chunk_size transpose_state_layout",
    "fused_recurrent_gdn2": "q k v g b w A_log dt_bias scale initial_state output_final_state "
    "use_qk_l2norm_in_kernel use_gate_in_kernel lower_bound state_v_first cu_seqlens / transpose_state_layout",
}
# Defaults other than None.
DEFAULTS = {"normalize": True}


@pytest.mark.parametrize("name", FLA)
def test_signatures_are_those_of_fla(name):
    positional, _, named = FLA[name].partition("/")
    parameters = inspect.signature(getattr(gdn, name)).parameters
    kinds = {kind: [p.name for p in parameters.values() if p.kind == kind] for kind in inspect._ParameterKind}
    assert kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD] == positional.split()
    assert set(named.split()) <= set(kinds[inspect.Parameter.KEYWORD_ONLY])
    assert not kinds[inspect.Parameter.VAR_KEYWORD]
    flags = ("use_", "allow_", "output_", "state_v_first", "safe_", "disable_", "return_", "reverse")
    for p in parameters.values():
        if p.name in positional.split() and p.default is not inspect.Parameter.empty:
            expected = DEFAULTS.get(p.name, False if p.name.startswith(flags) else None)
            assert p.default is expected, p


# --- precision and the element type of o ------------------------------------------


@pytest.mark.parametrize("tokens", (20, 3))
def test_float32_o_of_16_bit_inputs(tokens):
    x = Inputs(tokens)
    arrays = [value.astype(np.float16) for value in (x.q, x.k, x.v)]
    rounded, _ = gdn.recurrence(*arrays)
    for options in ({"out_dtype": "float32"}, {"out_dtype": np.float32, "precision": "high"}):
        o, _ = gdn.recurrence(*arrays, **options)
        assert o.dtype == np.float32 and not np.array_equal(o, rounded.astype(np.float32))
        assert np.array_equal(o.astype(np.float16), rounded)
    given = np.empty(x.v.shape, np.float32)
    assert gdn.recurrence(*arrays, out=given)[0] is given
    assert np.array_equal(given, o)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": "exact"}, ValueError, "precision is 'exact'; expected one of default, high"),
        ({"out_dtype": "float16"}, TypeError, "out_dtype is f16; expected that of v, float32, or float32"),
        ({"out_dtype": "float64"}, TypeError, "out_dtype is float64"),
    ],
)
def test_refused_precision(options, error, message):
    x = Inputs(20)
    with pytest.raises(error, match=message):
        gdn.recurrence(x.q, x.k, x.v, **options)
    half = [value.astype(np.float16) for value in (x.q, x.k, x.v)]
    with pytest.raises(TypeError, match="out has element type float32, but out_dtype is f16"):
        gdn.recurrence(*half, out=np.empty(x.v.shape, np.float32), out_dtype="f16")


def test_precision_is_part_of_the_schedule(monkeypatch):
    """Of kernels for the GPU; the CPU and float32 inputs have nothing to gain."""
    from gdn import backend, build
    from gdn.checks import check_call

    def schedule(T, dtype, **options):
        q, v = (np.zeros((1, T, 2, 128), dtype) for _ in "qv")
        call = check_call(q, q, v, precision="high", **options)
        return backend.make_rule(call, False, "f32").schedule

    assert schedule(100, np.float16) is None
    monkeypatch.setattr(backend.arrays, "on_cpu", lambda x: False)
    auto = build.schedule("auto", precision="high")
    assert auto == "#gdn.schedule<precision = high>"
    assert schedule(100, np.float16) == auto
    assert schedule(100, np.float16, chunk=32) == build.schedule("split", 32, 64, 2, precision="high")
    assert schedule(4, np.float16) == build.schedule("step", 8, 16, precision="high")
    assert schedule(100, np.float32) is None
