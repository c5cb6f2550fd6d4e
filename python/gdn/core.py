# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gdn.recurrence`: every model of the op `gdn.recurrence`, on arrays. The functions of gdn.fla call it."""

from __future__ import annotations

from . import arrays, backend
from .checks import check_call, check_sequences


def recurrence(
    q,
    k,
    v,
    gate=None,
    beta=None,
    erase=None,
    write=None,
    *,
    scale=None,
    initial_state=None,
    output_final_state=True,
    gate_form="log",
    A_log=None,
    dt_bias=None,
    lower_bound=None,
    beta_form="value",
    qk_l2norm=False,
    state_v_first=True,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    chunk=None,
    checkpoint_every=None,
    precision="default",
    out_dtype=None,
    checkpoints=None,
    out=None,
    final_state=None,
    state_indices=None,
    validate=False,
):
    """The recurrence over time of linear attention and of the delta rules.

    Per sequence and value head, for the tokens t in order, with S of V rows and K columns, in float32::

        S <- S * exp(gate_t)                             per head, or per column of S
        S <- S + (w_t o v_t - S (e_t o k_t)) k_t^T       e = w = beta, or erase and write
        S <- S + v_t k_t^T                               without beta, erase and write
        o_t = scale * S q_t

    Which of gate, beta, erase and write are given selects the model: none is linear attention; a gate
    per head Mamba-2, RetNet and lightning attention; a gate per key channel GLA; beta DeltaNet; beta
    and a gate per head Gated DeltaNet; beta and a gate per channel Kimi Delta Attention; a gate per
    channel with erase and write Gated DeltaNet-2.

    Args:
        q, k: [B, T, H, K], bfloat16, float16 or float32.
        v: [B, T, HV, V], of the type of q; HV is a multiple of H, value head h uses key head h // (HV // H).
        gate: [B, T, HV] or [B, T, HV, K]. `gate_form` "log": natural logarithm of the decay, at most 0
            (above 0 is computed as given); "linear": the decay itself, in [0, 1]; "raw": the model's
            projection a, from which the gate is -exp(A_log) softplus(a + dt_bias), or with `lower_bound`
            in [-5, 0) lower_bound * sigmoid(exp(A_log) (a + dt_bias)); "constant": [HV] logarithms for
            all tokens.
        beta: [B, T, HV]. `beta_form` "value": the write strength, 0 to 1 (or 2); "sigmoid" and "2sigmoid":
            logits, of which it is sigmoid(beta) or 2 sigmoid(beta); "one": 1, without an operand.
        erase, write: [B, T, HV, K] and [B, T, HV, V]; both or none, without beta.
        scale: factor on q, K^-1/2 by default.
        initial_state: [N, HV, V, K], or [N, HV, K, V] without `state_v_first`; float32, bfloat16 or
            float16; zeros by default. N is B, or the number of packed sequences.
        A_log: [HV] (any shape of HV elements); with a lower bound zeros by default.
        dt_bias: [HV], or [HV, K] for a gate per channel (any shape of that many elements).
        qk_l2norm: divide q and k by sqrt(sum(x^2) + 1e-6) over the last dimension first.
        cu_seqlens: [N + 1], int32 or int64: the starts of N sequences packed in one row (B = 1). The
            device's copy is read by the kernels only: nothing waits for it.
        cu_seqlens_cpu: a copy of cu_seqlens on the host (any sequence of integers), which is checked.
        chunk: tokens per chunk (16, 32 or 64); chosen by the compiler if None.
        checkpoint_every: returns the states inside the sequences too: after each token of a call of at most
            8 tokens (1), or after every 64 tokens, or a multiple of that.
        precision: "default", where what is computed inside of a chunk is rounded to the type of q, k and v as an
            operand of products, or "high", where such an operand is the sum of two values of that type: the final
            state is as exact as float32 sums are, and o as its own type lets it be. It costs up to twice the time,
            and nothing with float32 inputs, on the CPU and where few tokens go one by one. `qk_l2norm` rounds
            q and k to their type with either.
        out_dtype: element type of a new o: that of v, or float32.
        checkpoints: destination of these states.
        out: destination of o, of the type of v or of float32.
        final_state: destination of the final state, of the state's shape. It may be `initial_state`
            itself: then the state is updated in place.
        state_indices: [N], int32 or int64: `initial_state` is a pool of any number of states, of which
            sequence n starts from entry state_indices[n] and leaves its final state there. The pool is
            returned. A sequence with a slot below 0 touches no entry and its o is 0. Two sequences must
            not have one slot.
        validate: reads cu_seqlens and state_indices back and checks them, which waits for the device.

    Returns:
        o, [B, T, HV, V] of the type of v or out_dtype, and the final state or None. A new final state is float32.
        An empty sequence has its initial state as final state. With checkpoint_every = n also the
        checkpoints, [B, T // n, ...] and float32 if new: entry j of a sequence is its state after (j + 1) n
        tokens; the entries of packed sequence s start at cu_seqlens[s] // n. An initial state that is
        not the destination of the final one is never changed: a verify step with rollback needs no more.

    Raises:
        ValueError, TypeError: shapes, types, devices or options that do not fit, before any launch.
        RuntimeError: gradients are needed (there is no backward pass yet).

    Inputs are used where they lie if they are contiguous and 16-byte aligned. So are q, k, v, gate, beta,
    erase and write that are slices of wider rows: what belongs to a token contiguous, tokens (and the
    sequences behind them) at one distance, which is a multiple of the last size if there are heads of it,
    and of 16 bytes. Any other input is copied first, with a `gdn.CopyWarning` if it takes more than
    1 MiB; `warnings.simplefilter("error", gdn.CopyWarning)` refuses such calls. Destinations must be
    contiguous. Inside `torch.autocast` q, k and v are cast to its type.
    """
    if state_indices is not None and final_state is None:
        final_state = initial_state
    wanted = output_final_state or final_state is not None
    key = prepared = None
    if not validate and arrays.on_torch_cuda(q) and not arrays.is_tracing(q):
        from . import eager

        tensors = (q, k, v, gate, A_log, dt_bias, beta, erase, write, cu_seqlens, state_indices, initial_state)
        options = (scale, gate_form, lower_bound, beta_form, qk_l2norm, state_v_first, chunk, checkpoint_every)
        fields = (*tensors, out, final_state, checkpoints, *options, precision, out_dtype, False)
        key = eager.key_of(fields, wanted)
        entry = None if key is None else eager.find(key)
        if entry is not None:
            if cu_seqlens_cpu is not None:
                check_sequences(q, cu_seqlens, cu_seqlens_cpu)
            return _results(eager.run(entry, fields), wanted, checkpoint_every)
        if key is not None:
            prepared = eager.first_run(key, fields)
    q, k, v = arrays.autocast(q, k, v)
    call = check_call(
        q,
        k,
        v,
        gate,
        beta,
        erase,
        write,
        scale=scale,
        initial_state=initial_state,
        gate_form=gate_form,
        A_log=A_log,
        dt_bias=dt_bias,
        lower_bound=lower_bound,
        beta_form=beta_form,
        qk_l2norm=qk_l2norm,
        v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        cu_seqlens_cpu=cu_seqlens_cpu,
        chunk=chunk,
        every=checkpoint_every,
        precision=precision,
        out_dtype=out_dtype,
        checkpoints=checkpoints,
        out=out,
        final_state=final_state,
        state_indices=state_indices,
        validate=validate,
    )
    return _results(backend.recurrence(call, prepared, wanted), wanted, checkpoint_every)


def _results(results, wanted, every):
    o, state, checkpoints = results
    state = state if wanted else None
    return (o, state) if every is None else (o, state, checkpoints)
