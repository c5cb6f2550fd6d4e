# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Properties of gdn's kernels that need no oracle: what must be equal, bit for bit or within rounding.

Each check names the kernels it needs, so that they can be compiled elsewhere, and returns a number that
must not exceed its limit. A limit of 0 counts values with different bits.
"""

import workloads

LENGTHS = (700, 1, 64, 129, 333, 63, 500, 257)
HQK, HV, K, V, T = 4, 8, 128, 128, 300
ROUNDING = 8e-3  # of bf16 outputs


def text(T=T, Hqk=HQK, Hv=HV, K=K, V=V, *, schedule=None, **options):
    from gdn import build

    options = {"gate": "head", "beta": True, **options}
    return build.recurrence(1, T, Hqk, Hv, K, V, schedule=schedule, **options)


def tensors(seed, T=T, Hqk=HQK, Hv=HV, K=K, V=V, N=1):
    import torch

    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, device="cuda", generator=generator)

    return {
        "q": workloads.normalised(normal(1, T, Hqk, K)).bfloat16(),
        "k": workloads.normalised(normal(1, T, Hqk, K)).bfloat16(),
        "v": normal(1, T, Hv, V).bfloat16(),
        "gate": torch.nn.functional.logsigmoid(normal(1, T, Hv)),
        "beta": torch.sigmoid(normal(1, T, Hv)),
        "state": normal(N, Hv, V, K),
    }


def run(kernel, x, **changes):
    """o and the final state; the inputs stay as they are."""
    import torch

    x = dict(x, **changes)
    state = x.pop("state").clone()
    o = torch.full_like(x["v"], float("nan"))
    return kernel(**{name: value.contiguous() for name, value in x.items()}, o=o, state=state)


def different(a, b):
    """Values with different bits; both zeros are equal."""
    return int((a != b).sum())


def error(a, b):
    import oracle_torch

    return oracle_torch.ratio(a, b)


def packed(lengths):
    import torch

    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return torch.tensor(starts, dtype=torch.int32, device="cuda")


def part(x, a, b):
    return {name: value if name == "state" else value[:, a:b].contiguous() for name, value in x.items()}


# --- checks: (kernels) -> number ---------------------------------------------------


def repeated(kernels):
    """20 runs of a packed batch."""
    x = tensors(1, sum(LENGTHS), N=len(LENGTHS))
    first = run(kernels["packed"], x, offsets=packed(LENGTHS))
    again = [run(kernels["packed"], x, offsets=packed(LENGTHS)) for _ in range(20)]
    return sum(different(a, b) for results in again for a, b in zip(results, first))


def alone_or_in_a_batch(kernels):
    """Each sequence alone, in a batch of 8 and in the batch the other way round."""
    x = tensors(2, sum(LENGTHS), N=len(LENGTHS))
    starts = packed(LENGTHS).tolist()
    o, state = run(kernels["packed"], x, offsets=packed(LENGTHS))
    order = list(range(len(LENGTHS)))[::-1]
    pieces = [part(x, starts[n], starts[n + 1]) for n in range(len(LENGTHS))]
    turned = {name: _join([pieces[n][name] for n in order]) for name in x if name != "state"}
    turned["state"] = x["state"].flip(0)
    lengths = [LENGTHS[n] for n in order]
    turned_o, turned_state = run(kernels["packed"], turned, offsets=packed(lengths))
    turned_starts = packed(lengths).tolist()
    count = different(turned_state, state.flip(0))
    for n, length in enumerate(LENGTHS):
        a = starts[n]
        one = dict(pieces[n], state=x["state"][n : n + 1])
        one_o, one_state = run(kernels["packed"], one, offsets=packed([length]))
        b = turned_starts[order.index(n)]
        count += different(one_o, o[:, a : a + length]) + different(one_state, state[n : n + 1])
        count += different(turned_o[:, b : b + length], o[:, a : a + length])
    return count


def _join(parts):
    import torch

    return torch.cat(parts, dim=1)


def prefix(kernels):
    """All inputs of the tokens from 200 on change; the outputs before do not."""
    x, y = tensors(3), tensors(4)
    y = {name: value if name == "state" else _join([x[name][:, :200], value[:, 200:]]) for name, value in y.items()}
    y["state"] = x["state"]
    return different(run(kernels["dense"], x)[0][:, :200], run(kernels["dense"], y)[0][:, :200])


def no_gate(kernels):
    """Without a gate as with gates of 0."""
    x = tensors(5)
    with_zeros = run(kernels["dense"], x, gate=x["gate"] * 0)
    del x["gate"]
    return sum(different(a, b) for a, b in zip(run(kernels["no gate"], x), with_zeros))


def grouped_heads(kernels):
    """Key heads repeated for each of their value heads."""
    x = tensors(6)
    repeated = {name: x[name].repeat_interleave(HV // HQK, dim=2) for name in ("q", "k")}
    results = run(kernels["all heads"], x, **repeated)
    return max(error(a, b) for a, b in zip(results, run(kernels["dense"], x)))


def value_columns(kernels):
    """Each half of the columns of V by itself."""
    x = tensors(7)
    o, state = run(kernels["dense"], x)
    worst = 0.0
    for a, b in ((0, V // 2), (V // 2, V)):
        results = run(kernels["half V"], x, v=x["v"][..., a:b], state=x["state"][:, :, a:b].contiguous())
        worst = max(worst, error(results[0], o[..., a:b]), error(results[1], state[:, :, a:b]))
    return worst


def padded_keys(kernels):
    """K = 100 as K = 128 with zeros behind."""
    import torch

    x = tensors(8, K=100)
    wide = {name: torch.nn.functional.pad(x[name], (0, 28)) for name in ("q", "k", "state")}
    o, state = run(kernels["K 100"], x)
    wide_o, wide_state = run(kernels["scale of K 100"], x, **wide)
    return max(error(wide_o, o), error(wide_state[..., :100], state))


def equal_gates(kernels):
    """Gates per channel that are equal over the channels, and gates per head."""
    x = tensors(9)
    wide = x["gate"][..., None].expand(*x["gate"].shape, K).contiguous()
    results = run(kernels["channel"], x, gate=wide)
    return max(error(a, b) for a, b in zip(results, run(kernels["dense"], x)))


def equal_keys(kernels):
    """Equal unit keys and beta 1: o_t = scale (q_t k) v_t, whatever the gates."""
    x = tensors(10)
    k = x["k"][:, :1].expand_as(x["k"]).contiguous()
    o, _ = run(kernels["dense"], x, k=k, beta=x["beta"] * 0 + 1, state=x["state"] * 0)
    dots = (x["q"].double() * k.double()).sum(-1).repeat_interleave(HV // HQK, dim=2)
    return error(o, K**-0.5 * dots[..., None] * x["v"].double())


def lookup_table(kernels):
    """One-hot keys and no decay: the state is a table, exactly."""
    import torch

    x = tensors(11, 64, 1, 1, 64, 64)
    places = torch.arange(64, device="cuda")
    x["k"] = torch.eye(64, device="cuda")[places].reshape(1, 64, 1, 64).bfloat16()
    x["q"] = torch.eye(64, device="cuda")[places // 2].reshape(1, 64, 1, 64).bfloat16()
    x["v"] = (x["v"].float() * 4).round().clamp(-8, 8).bfloat16()
    o, state = run(kernels["table"], x, gate=x["gate"] * 0, beta=x["beta"] * 0 + 0.75, state=x["state"] * 0)
    values = 0.75 * x["v"].float()[0, :, 0]
    return different(o.float()[0, :, 0], values[places // 2]) + different(state[0, 0], values.T)


def split_in_time(kernels):
    """300 tokens as 100 and 200, and as 237 and 63."""
    x = tensors(12)
    o, state = run(kernels["dense"], x)
    worst = 0.0
    for cut in (100, 237):
        first_o, middle = run(kernels["packed"], part(x, 0, cut), offsets=packed([cut]))
        rest_o, last = run(kernels["packed"], dict(part(x, cut, T), state=middle), offsets=packed([T - cut]))
        worst = max(worst, error(_join([first_o, rest_o]), o), error(last, state))
    return worst


def kernels(schedule=None):
    """{name: text} of all kernels of the checks."""
    return {
        "dense": text(schedule=schedule),
        "packed": text(T=None, N=None, offsets="i32", schedule=schedule),
        "no gate": text(gate=None, schedule=schedule),
        "all heads": text(Hqk=HV, schedule=schedule),
        "half V": text(V=V // 2, schedule=schedule),
        "K 100": text(K=100, schedule=schedule),
        "scale of K 100": text(scale=100**-0.5, schedule=schedule),
        "channel": text(gate="channel", schedule=schedule),
        "table": text(64, 1, 1, 64, 64, scale=1.0, schedule=schedule),
    }


CHECKS = {
    "20 runs": (repeated, 0),
    "alone and in batches of 8": (alone_or_in_a_batch, 0),
    "later tokens change nothing": (prefix, 0),
    "no gate = gates of 0": (no_gate, 0),
    "one-hot keys: a table": (lookup_table, 0),
    "grouped heads = repeated heads": (grouped_heads, 1e-3),
    "columns of V by halves": (value_columns, 1e-3),
    "K 100 = K 128 with zeros": (padded_keys, ROUNDING),
    "equal gates per channel = per head": (equal_gates, ROUNDING),
    "equal keys, beta 1: scale (q k) v": (equal_keys, 2e-2),
    "split in time": (split_in_time, ROUNDING),
}


def rows(schedule=None, log=print):
    """[{identity, value, limit, holds}]; a check that does not run fails with the reason."""
    import gdn

    loaded, results = {}, []
    for name, source in kernels(schedule).items():
        try:
            loaded[name] = gdn.load(source)
        except gdn.CompileError as reason:
            log(f"kernel '{name}': {reason}")
    for identity, (check, limit) in CHECKS.items():
        try:
            value = check(loaded)
        except KeyError as missing:
            value = f"kernel {missing} was not compiled"
        holds = not isinstance(value, str) and value <= limit
        results.append({"identity": identity, "value": value, "limit": limit, "holds": holds})
        log(f"{identity:36} {value if isinstance(value, (int, str)) else f'{value:.1e}'} {'' if holds else 'FAILS'}")
    return results
