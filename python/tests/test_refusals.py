# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of gdn refuse: each with a sentence that names the argument and the sizes, before any launch."""

import numpy as np
import pytest

import gdn
from gdn import backend

B, T, H, HV, K, V = 2, 12, 2, 4, 16, 8


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    def fail(*arguments):
        raise AssertionError("a kernel was started")

    monkeypatch.setattr(backend, "run", fail)


def arrays(batch=B, tokens=T):
    rng = np.random.default_rng(0)

    def make(*shape):
        return rng.standard_normal((batch, tokens, *shape)).astype(np.float32)

    return {"q": make(H, K), "k": make(H, K), "v": make(HV, V), "g": -abs(make(HV)), "beta": abs(make(HV))}


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def call(function="chunk_gated_delta_rule", packed=False, **changes):
    x = arrays(1, T) if packed else arrays()
    x.update(changes)
    return getattr(gdn, function)(**x)


CU = np.array([0, 5, T])
POOL = {"initial_state": zeros(5, HV, K, V)}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        # sequences
        ({"cu_seqlens": CU}, ValueError, "batch size is expected to be 1 rather than 2"),
        ({"cu_seqlens": np.array([0, 5, 11]), "packed": True}, ValueError, "offsets end at 11, but there are 12"),
        ({"cu_seqlens": np.array([0, 7, 5, T]), "packed": True}, ValueError, "decrease from 7 to 5 at entry 2"),
        ({"cu_seqlens": np.array([1, T]), "packed": True}, ValueError, "start at 1, not at 0"),
        ({"cu_seqlens": np.array([0]), "packed": True}, ValueError, r"cu_seqlens has shape \[1\]"),
        ({"cu_seqlens": CU.astype(np.float32), "packed": True}, TypeError, "type f32; expected int32 or int64"),
        ({"cu_seqlens": CU, "cu_seqlens_cpu": [0, T], "packed": True}, ValueError, "has 2 entries, .* has 3"),
        ({"cu_seqlens": CU, "cu_seqlens_cpu": [0, 6, 11], "packed": True}, ValueError, "end at 11"),
        ({"cu_seqlens_cpu": [0, T]}, ValueError, "cu_seqlens_cpu is given without cu_seqlens"),
        # heads and shapes
        ({"v": zeros(B, T, 3, V)}, ValueError, "HV = 3 heads, which is no multiple of the H = 2"),
        ({"k": zeros(B, T, 4, K)}, ValueError, r"k has shape \[2, 12, 4, 16\], but q is \[2, 12, 2, 16\]"),
        ({"v": zeros(B, T + 1, HV, V)}, ValueError, r"v has shape \[2, 13, 4, 8\]"),
        ({"q": zeros(B, T, K)}, ValueError, r"q has shape \[2, 12, 16\]; expected rank 4"),
        ({"q": zeros(B, T, H, 300), "k": zeros(B, T, H, 300)}, ValueError, "K = 300 key channels; 1 to 256"),
        ({"g": zeros(B, T, HV, K)}, ValueError, r"`g` has shape \[2, 12, 4, 16\]; expected \[B, T, HV\]"),
        ({"g": zeros(B, T, H)}, ValueError, r"the gate has shape \[2, 12, 2\]"),
        ({"beta": zeros(B, T, H)}, ValueError, r"beta has shape \[2, 12, 2\]"),
        ({"g": zeros(B, T, HV, dtype=np.int64)}, TypeError, "the gate has element type i64"),
        ({"beta": zeros(B, T, HV, dtype=np.float64)}, TypeError, "beta has element type float64"),
        ({"k": zeros(B, T, H, K, dtype=np.float16)}, TypeError, "must have one element type"),
        ({"q": [[1.0]]}, TypeError, "q of type list is no array"),
        # states
        ({"initial_state": zeros(3, HV, K, V)}, ValueError, "initial_state has 3 states; .* sequences, 2"),
        ({"initial_state": zeros(B, HV, V, K)}, ValueError, r"\[2, 4, 8, 16\], but \[N, HV, K, V\] here is \[2, 4, 16"),
        ({"initial_state": zeros(B, HV, K, V), "state_v_first": True}, ValueError, r"\[N, HV, V, K\] here"),
        ({"initial_state": zeros(B, HV, K, V, dtype=np.int32)}, TypeError, "initial_state has element type i32"),
        ({"final_state": zeros(B, HV, K)}, ValueError, "final_state has shape"),
        ({"out": zeros(B, T, HV, V + 1)}, ValueError, r"out has shape \[2, 12, 4, 9\]"),
        ({"out": zeros(B, T, HV, V, dtype=np.float16)}, TypeError, "out has element type float16"),
        ({"state_indices": zeros(B, dtype=np.int32)}, ValueError, "needs a pool of states as initial_state"),
        ({"state_indices": zeros(3, dtype=np.int32), **POOL}, ValueError, r"state_indices has shape \[3\]"),
        ({"state_indices": zeros(B), **POOL}, TypeError, "state_indices has element type f32"),
        ({"state_indices": np.array([1, 5]), **POOL}, ValueError, "slot 5 of sequence 1 is not in a pool of 5"),
        ({"state_indices": np.array([3, 3]), **POOL}, ValueError, "sequences 0 and 1 have the same slot 3"),
        (
            {"state_indices": np.array([1, 2]), **POOL, "final_state": zeros(B, HV, K, V)},
            ValueError,
            "final_state cannot be given with state_indices",
        ),
        ({"checkpoint_every": 0}, ValueError, "checkpoint_every is 0"),
        ({"checkpoint_every": 1}, ValueError, "checkpoint_every is 1; .* more than 8 tokens .* multiples of 64"),
        # options
        ({"allow_neg_eigval": True}, ValueError, "`allow_neg_eigval=True` requires"),
        ({"use_gate_in_kernel": True}, ValueError, "A_log is needed"),
        ({"A_log": zeros(HV)}, ValueError, "`A_log` is given, but use_gate_in_kernel is False"),
        ({"dt_bias": zeros(HV)}, ValueError, "`dt_bias` is given, but use_gate_in_kernel is False"),
        ({"use_gate_in_kernel": True, "A_log": zeros(3)}, ValueError, r"A_log has shape \[3\]; \[4\] needs 4"),
        ({"use_gate_in_kernel": True, "A_log": zeros(HV), "dt_bias": zeros(5)}, ValueError, r"dt_bias has shape \[5\]"),
        ({"use_gate_in_kernel": True, "A_log": zeros(HV), "linear_gate": True}, ValueError, "exclude one another"),
        ({"chunk_size": 48}, ValueError, "`chunk_size` must be one of"),
        ({"head_first": True}, DeprecationWarning, "head_first has been removed"),
        ({"transpose_state_layout": True, "state_v_first": True}, ValueError, "Cannot pass both"),
        ({"chunk_indices": zeros(2)}, NotImplementedError, "`chunk_indices` is not supported"),
        ({"cp_context": object()}, NotImplementedError, "`cp_context` is not supported"),
        ({"attention_mask": zeros(B, T)}, TypeError, "unexpected keyword argument 'attention_mask'"),
        ({"g": None}, ValueError, "`g` is needed"),
    ],
)
def test_chunk_gated_delta_rule(changes, error, message):
    with pytest.raises(error, match=message):
        call(**changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gv": zeros(B, T, HV, V)}, NotImplementedError, "`gv` is not supported"),
        ({"gk": zeros(B, T, HV, K)}, NotImplementedError, "`g` and `gk` together"),
        ({"beta": zeros(B, T, HV, V)}, NotImplementedError, "one value per value channel"),
        ({"beta": None, "use_beta_sigmoid_in_kernel": True}, ValueError, "needs `beta`"),
        ({"use_gate_in_kernel": True}, ValueError, "`A_log` must be provided"),
        ({"use_gate_in_kernel": True, "A_log": zeros(HV), "g": None}, ValueError, "raw pre-activation"),
    ],
)
def test_fused_recurrent_gated_delta_rule(changes, error, message):
    with pytest.raises(error, match=message):
        call("fused_recurrent_gated_delta_rule", **changes)


KDA = {"g": zeros(B, T, HV, K)}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"g": zeros(B, T, HV)}, ValueError, r"`g` has shape \[2, 12, 4\]; expected \[B, T, HV, K\]"),
        ({"g": zeros(B, T, HV, V)}, ValueError, r"the gate has shape \[2, 12, 4, 8\]"),
        ({"lower_bound": -6.0, "use_gate_in_kernel": True}, ValueError, r"lower_bound is -6.0; .* \[-5, 0\)"),
        ({"lower_bound": -1.0}, ValueError, "`lower_bound` is given, but use_gate_in_kernel is False"),
        ({"safe_gate": True, "use_gate_in_kernel": True, "A_log": zeros(HV)}, ValueError, "`lower_bound` must be"),
        ({"use_gate_in_kernel": True}, ValueError, "A_log is needed"),
        ({"chunk_size": 16}, ValueError, "`chunk_size` must be one of"),
        ({"return_intermediate_states": True}, NotImplementedError, "`return_intermediate_states`"),
        ({"max_num_seqs": 2}, ValueError, "`max_num_seqs` is given without"),
        ({"cp_context": 1}, NotImplementedError, "`cp_context`"),
    ],
)
def test_chunk_kda(changes, error, message):
    with pytest.raises(error, match=message):
        call("chunk_kda", **{**KDA, **changes})


def test_others():
    x = arrays()
    q, k, v, g, beta = x.values()
    with pytest.raises(ValueError, match="`max_num_seqs` is 3, but cu_seqlens has 2 sequences"):
        y = arrays(1)
        gate = zeros(1, T, HV, K)
        gdn.chunk_kda(y["q"], y["k"], y["v"], gate, y["beta"], cu_seqlens=CU, use_graph=True, max_num_seqs=3)
    with pytest.raises(NotImplementedError, match="`reverse` is not supported"):
        gdn.fused_recurrent_simple_gla(q, k, v, g, reverse=True)
    with pytest.raises(ValueError, match="Only one of `g` and `g_gamma`"):
        gdn.chunk_simple_gla(q, k, v, g, zeros(HV))
    with pytest.raises(ValueError, match=r"the constant gate has shape \[2\], but \[HV\] is \[4\]"):
        gdn.chunk_simple_gla(q, k, v, g_gamma=zeros(2))
    with pytest.raises(ValueError, match="scale must be positive"):
        gdn.fused_recurrent_delta_rule(q, k, v, beta, scale=-1.0)
    with pytest.raises(ValueError, match=r"erase has shape \[2, 12, 4, 8\]"):
        gdn.recurrence(q, k, v, None, None, zeros(B, T, HV, V), zeros(B, T, HV, V))
    with pytest.raises(ValueError, match="erase and write come together"):
        gdn.recurrence(q, k, v, erase=zeros(B, T, HV, K))
    with pytest.raises(ValueError, match="beta excludes erase and write"):
        gdn.recurrence(q, k, v, g, beta, zeros(B, T, HV, K), zeros(B, T, HV, V))
    with pytest.raises(ValueError, match="gate_form is 'exp'"):
        gdn.recurrence(q, k, v, g, gate_form="exp")
    with pytest.raises(ValueError, match="beta_form is 'tanh'"):
        gdn.recurrence(q, k, v, g, beta, beta_form="tanh")
    with pytest.raises(ValueError, match="chunk is 20"):
        gdn.recurrence(q, k, v, g, beta, chunk=20)
    with pytest.raises(ValueError, match="normalize needs as many value heads"):
        gdn.chunk_linear_attn(q, k, v)


def test_parts_of_a_mixer():
    x, w = zeros(2, 6, 10), zeros(10, 4)
    with pytest.raises(ValueError, match=r"weight has shape \[9, 4\]; expected \[D, W\] with D = 10"):
        gdn.short_conv(x, zeros(9, 4))
    with pytest.raises(ValueError, match=r"initial_state has shape \[2, 10, 2\]; .* at least 3"):
        gdn.short_conv(x, w, initial_state=zeros(2, 10, 2))
    with pytest.raises(ValueError, match="activation is 'relu'"):
        gdn.short_conv(x, w, activation="relu")
    with pytest.raises(ValueError, match="z has shape"):
        gdn.gated_rms_norm(x, zeros(2, 6, 9), zeros(10))
    with pytest.raises(ValueError, match="weight has shape"):
        gdn.gated_rms_norm(x, x, zeros(9))
    with pytest.raises(ValueError, match="lower_bound is 1.0"):
        gdn.gate(x, zeros(10), lower_bound=1.0)
    with pytest.raises(ValueError, match=r"a has shape \[10, 4\]"):
        gdn.gate(w, zeros(10))
    with pytest.raises(TypeError, match="x has element type i64"):
        gdn.l2norm(np.zeros((2, 3), np.int64))


@pytest.mark.parametrize("same", [True, False])
def test_a_destination_that_is_an_input(same):
    x = arrays()
    with pytest.raises(ValueError, match="out, which is written to, overlaps v"):
        gdn.chunk_gated_delta_rule(**x, out=x["v"] if same else x["v"][:])
