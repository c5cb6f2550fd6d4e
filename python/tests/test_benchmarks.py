# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of the benchmarks that need no GPU: the list of cells, floors, the chunk oracle, tables and charts."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gdn import reference as ref
from tool_paths import need_tool

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def load(name):
    sys.modules.pop(name, None)
    return importlib.import_module(name)


# --- cells ------------------------------------------------------------------------


def test_each_head_configuration_meets_each_shape():
    work = load("workloads")
    main = [c for c in work.cells() if c.gates == "quarter" and c.shape in work.SHAPES and c.K == 128]
    assert len(work.HEADS) == 9 and len(work.SHAPES) == 19
    assert len(main) == len({(c.heads, c.shape) for c in main}) == 9 * 19
    assert len(work.cells()) == len({c.name for c in work.cells()})


def test_sizes_of_the_other_cells():
    work = load("workloads")
    others = {(c.heads, c.K, c.V) for c in work.cells() if c.K != 128}
    assert others == {("30/30", 96, 192), ("6/6", 256, 512)}
    assert {c.gates for c in work.cells()} == set(work.GATES)


@pytest.mark.parametrize(
    ("shape", "sequences", "tokens"), [("1x8192", 1, 8192), ("8192x4", 4, 32768), ("1024+7168", 2, 8192)]
)
def test_shapes_are_what_their_names_say(shape, sequences, tokens):
    work = load("workloads")
    (cell,) = [c for c in work.cells(["16/32"], [shape]) if c.gates == "quarter"]
    assert (cell.N, cell.T, cell.starts[-1]) == (sequences, tokens, tokens)


def test_random_lengths():
    work = load("workloads")
    for name, lengths in work.VARLEN.items():
        count, total = (int(word) for word in name.split() if word.isdigit())
        assert (len(lengths), sum(lengths)) == (count, total)
        assert min(lengths) >= 1
    assert work.random_lengths(5, 100, 7) == work.random_lengths(5, 100, 7)


def test_floors():
    """Two cells counted by hand: products bound the first, traffic the second."""
    work = load("workloads")
    (cell,) = [c for c in work.cells(["16/32"], ["1x8192"]) if c.gates == "quarter"]
    assert cell.flop() == 10 * 2 * 64 * 64 * 128 * 32 * 128
    assert cell.bytes() == 8192 * 32 * (520 + 512 // 2) + 2 * 32 * 65536
    assert cell.floor_us() == pytest.approx(cell.flop() / work.MATMUL_RATE * 1e6)
    (cell,) = [c for c in work.cells(["16/16"], ["1024x8"])]
    assert cell.floor_us() == pytest.approx(cell.bytes() / work.MEMORY_RATE * 1e6)


# --- the float64 chunk form -------------------------------------------------------


def oracle_inputs(B, T, state_of, seed=0, gates="normal"):
    rng = np.random.default_rng(seed)
    x = {
        "q": ref.l2norm(rng.normal(size=(B, T, 2, 12))),
        "k": ref.l2norm(rng.normal(size=(B, T, 2, 12))),
        "v": rng.normal(size=(B, T, 4, 10)),
        "beta": 2 * ref.sigmoid(rng.normal(size=(B, T, 4))),
        "state": rng.normal(size=(state_of, 4, 10, 12)),
    }
    if gates == "normal":
        x["gate"] = -ref.softplus(rng.normal(size=(B, T, 4)))
    elif gates == "strong":
        x["gate"] = np.where(rng.random((B, T, 4)) < 0.1, -80.0, -1e-3)
    return x


def compare(x, starts, chunk, convert=np.asarray):
    offsets = None if starts is None else np.array(starts, np.int64)
    expected_o, expected_S = ref.recurrence(**x, offsets=offsets)
    tensors = {name: convert(value) for name, value in x.items()}
    o, S = load("chunk_oracle").recurrence(**tensors, starts=starts, chunk=chunk)
    np.testing.assert_allclose(np.asarray(o), expected_o, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(np.asarray(S), expected_S, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("gates", ["normal", "strong", None])
@pytest.mark.parametrize("chunk", [8, 32, 64])
def test_chunk_oracle_is_the_token_loop(chunk, gates):
    compare(oracle_inputs(2, 45, 2, gates=gates), None, chunk)


@pytest.mark.parametrize("chunk", [16, 128])
def test_chunk_oracle_of_packed_sequences(chunk):
    compare(oracle_inputs(1, 70, 5), [0, 0, 33, 33, 69, 70], chunk)


def test_chunk_oracle_without_beta():
    x = oracle_inputs(1, 40, 1)
    del x["beta"]
    compare(x, None, 16)


def test_chunk_oracle_in_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    compare(oracle_inputs(1, 70, 3), [0, 31, 31, 70], 16, lambda x: torch.from_numpy(np.array(x)))


# --- tables, charts and files -----------------------------------------------------

FACTS = {"gpu": "NVIDIA H200", "driver": "1.2", "date": "2026-01-02", "commit": "abc", "torch": None}


def side(median, correct=True):
    return {"median_us": median, "min_us": median, "max_us": median, "replays": 5, "first_call_s": 1.0,
            "error_o": 1e-3, "error_state": 2e-3, "correct": correct}  # fmt: skip


def prefill_rows():
    work = load("workloads")
    rows = []
    for cell in work.cells(["16/32", "30/30"], ["1x8192", "1x2048"], work.GATE_SETS):
        sides = {"gdn": side(100.0), "FLA": side(300.0), "FlashQLA": side(150.0)}
        sides["FlashInfer"] = side(50.0, correct=False)
        if cell.K != 128:
            sides["FlashQLA"] = {"unsupported": "only 128"}
        if cell.gates == "zero":
            sides["FlashQLA"] = {"failed": "RuntimeError: no"}
        rows.append({"heads": cell.heads, "shape": cell.shape, "K": cell.K, "V": cell.V, "gates": cell.gates,
                     "floor_us": cell.floor_us(), "sides": sides})  # fmt: skip
    return rows


def test_prefill_table():
    """A wrong result is marked and never the fastest; whoever did not run is named with the reason."""
    report = load("report")
    rows = prefill_rows()
    lines = report.prefill_table(FACTS, rows).splitlines()
    (line,) = [x for x in lines if x.split()[:4] == ["16/32", "128/128", "1x8192", "quarter"]]
    assert line.split()[4:10] == ["54.4", "100.0", "300.0", "150.0", "50.0!", "1.50"]
    (line,) = [x for x in lines if x.split()[:4] == ["30/30", "96/192", "1x8192", "quarter"]]
    assert line.split()[7:10] == ["-", "50.0!", "3.00"]
    (line,) = [x for x in lines if x.split()[:4] == ["16/32", "128/128", "1x2048", "zero"]]
    assert line.split()[7] == "failed"
    assert "FlashQLA: unsupported: only 128" in lines and "FlashQLA: failed: RuntimeError: no" in lines
    text = "\n".join(lines)
    assert f"faster than the fastest library in {len(rows)} of {len(rows)} cells, 1.5x in {len(rows)}" in text
    assert "wrong: FlashInfer in 16/32 1x8192 quarter" in text


def test_the_other_form_of_gdn_is_no_library():
    report = load("report")
    rows = prefill_rows()
    for row in rows:
        row["sides"]["gdn static"] = side(10.0)
    assert f"in {len(rows)} of {len(rows)} cells" in report.prefill_table(FACTS, rows)
    assert report.fastest_peer(rows[0]) == (150.0, "FlashQLA")


def test_cells_where_gdn_is_not_the_fastest_are_named():
    report = load("report")
    rows = prefill_rows()
    rows[1]["sides"]["FLA"] = side(99.0)
    name = " ".join(rows[1][key] for key in ("heads", "shape", "gates"))
    assert f"not faster in: {name}" in report.prefill_table(FACTS, rows)


def decode_rows():
    sides = {"gdn": side(50.0), "FLA": {"unsupported": "bf16"}, "FlashInfer": side(80.0), "copy": side(40.0)}
    return [{"work": "", "heads": "16/32", "B": B, "T": T, "state": "bf16", "state_bytes": 80_000_000, "sides": sides}
            for T in (1, 4) for B in (8, 64)]  # fmt: skip


def test_decode_table():
    lines = load("report").decode_table(FACTS, decode_rows()).splitlines()
    (line,) = [x for x in lines if x.split()[:3] == ["4", "bf16", "64"]]
    assert " ".join(line.split()[3:]) == "40.00 4.00 50.0 (80 %) - 80.0 (50 %) 1.0e-03 2.0e-03"


@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_charts_are_well_formed(kind):
    """One mark for each series and place, on the canvas, and the legend."""
    report = load("report")
    rows = prefill_rows() if kind == "prefill" else decode_rows()
    root = ElementTree.fromstring(getattr(report, f"{kind}_chart")(FACTS, rows))
    width, height = float(root.get("width")), float(root.get("height"))
    dots = root.findall("{*}circle")
    assert all(0 < float(d.get("cx")) < width and 0 < float(d.get("cy")) < height for d in dots)
    texts = [text.text for text in root.findall("{*}text")]
    if kind == "prefill":
        # Four cells of the first gate set: gdn and FLA in each, FlashQLA in two; the legend has four.
        assert len(dots) == 2 * 4 + 2 + 4
        assert {"heads 16/32", "heads 30/30, K/V 96/192", "1x2048", "floor"} <= set(texts)
    else:
        assert len(dots) == 2 * 4 + 3
        assert {"T = 4, state bf16", "B = 64"} <= set(texts)


def test_chart_axes():
    chart = load("chart")
    axis = chart.Logarithmic([10.0, 1000.0])
    assert axis.place(100.0) == pytest.approx(0.5)
    assert [tick for tick, main in axis.ticks() if main] == [10.0, 100.0, 1000.0]
    assert chart.Percent([50.0]).place(100.0) == pytest.approx(1 / 1.03)


def test_each_row_is_on_disk_at_once(tmp_path):
    report = load("report")
    log = report.Log(tmp_path, "prefill", FACTS)
    for count, row in enumerate(prefill_rows()[:2], 1):
        log.add(row)
        stored = json.loads((tmp_path / "prefill-NVIDIA_H200-2026-01-02.json").read_text())
        assert len(stored["rows"]) == count and stored["machine"]["commit"] == "abc"
    log.finish("table", "<svg/>")
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".txt", ".svg"}
    report.main([str(tmp_path / "prefill-NVIDIA_H200-2026-01-02.json")])
    assert (tmp_path / "prefill-NVIDIA_H200-2026-01-02.txt").read_text() == report.prefill_table(FACTS, log.rows) + "\n"


# --- timing -----------------------------------------------------------------------


def test_sets_and_replays():
    timing = load("timing")
    assert timing.set_count(1 << 40) == 2
    assert timing.set_count(64 << 20) == 4
    assert timing.set_count(1) == 12
    assert timing.replay_count(1.0) == timing.FEWEST and timing.replay_count(1e-6) == timing.MOST


def test_who_does_not_run_is_recorded():
    timing = load("timing")

    def unsupported():
        raise timing.Unsupported("K = 96")

    def broken():
        raise ImportError("no module")

    messages = []
    running, reasons = timing.sides([("a", unsupported), ("b", broken)], [], messages.append)
    assert running == []
    assert reasons == {"a": {"unsupported": "K = 96"}, "b": {"failed": "ImportError: no module"}}
    assert messages == ["  b failed: ImportError: no module"]


def test_peers_refuse_other_head_sizes():
    peers, work, timing = load("peers"), load("workloads"), sys.modules["timing"]
    cell = next(c for c in work.cells() if c.K != 128)
    for name in ("FlashQLA", "FlashInfer", "FlashInfer CP"):
        with pytest.raises(timing.Unsupported, match="only 128"):
            peers.PEERS[name](cell)


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
def test_kernels_of_the_cells_parse(sizes):
    tool = need_tool("gdn-opt")
    peers, work, decode = load("peers"), load("workloads"), load("decode")
    cells = work.cells(["2/8", "6/6"], ["1x2048", "2048x4"]) + work.cells(gates=[work.LAYER, work.CHANNEL])
    texts = [peers.Gdn.text(c, sizes) for c in cells]
    texts += [decode.Gdn.text(s, sizes, slots) for s in decode.steps([8], [1, 4], decode.STATES) for slots in (0, 1)]
    for text in dict.fromkeys(texts):
        done = subprocess.run([tool], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_warming_up_runs_processes_and_says_what_failed(tmp_path, monkeypatch):
    warm = load("warm")
    script = tmp_path / "warm.py"
    text = "import sys, time\ntime.sleep(float(sys.argv[2]))\nsys.exit('no b' if sys.argv[1] == 'b' else 0)\n"
    script.write_text(text)
    monkeypatch.setattr(warm, "HERE", tmp_path)
    results = warm.run([("a", 0), ("b", 0), ("c", 60)], 3, 3, lambda text: None)
    assert results["a 0"].endswith(" s") and "no b" in results["b 0"] and "failed" in results["c 60"]
    assert warm.run([("a", 60), ("a", 0)], 1, 0.5, lambda text: None)["a 0"] == "no time left"
    json.dumps(results)


# --- fidelity ---------------------------------------------------------------------


def test_kernels_of_the_checks_parse():
    tool = need_tool("gdn-opt")
    identities, fidelity = load("identities"), load("fidelity")
    for text in [fidelity.text(), fidelity.text("high"), *identities.kernels().values()]:
        done = subprocess.run([tool], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_each_hard_family_exists():
    fidelity = load("fidelity")
    assert len(fidelity.families()) == 11 and set(fidelity.HARD) < set(fidelity.families())


def test_errors_of_a_batch_are_those_of_its_runs(monkeypatch):
    """All families and seeds are one call; each run's errors are its own."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import oracle_torch

    fidelity = load("fidelity")
    inputs = fidelity.family_inputs
    monkeypatch.setattr(fidelity, "T", 20)
    monkeypatch.setattr(fidelity, "family_inputs", lambda change, seed: inputs(change, seed, device="cpu"))
    calls = []

    def wrong_in_one_run(x):
        calls.append(x)
        o, state = oracle_torch.recurrence(**x)
        o[3] *= 1.5  # seed 1 of the second family
        return o, state

    rows = fidelity.family_rows({"x": wrong_in_one_run}, 2, lambda text: None)
    assert len(calls) == 1 and [row["family"] for row in rows] == list(fidelity.families())
    assert [row["errors"]["x"] for row in rows] == [[0.0, 0.0], [0.25, 0.0], *[[0.0, 0.0]] * 9]
    first = inputs(fidelity.families()["beta in 0..2"], 1, device="cpu")
    at = 2 * list(fidelity.families()).index("beta in 0..2") + 1
    assert all(torch.equal(calls[0][name][at : at + 1], value) for name, value in first.items())


def test_fidelity_table():
    """Errors above FLA's, or above half of them in a hard family, are marked, and what does not hold."""
    fidelity = load("fidelity")
    families = [
        {"family": "no gates", "errors": {"gdn": [1e-3, 2e-3], "FLA": [2e-3, 2e-3]}},
        {"family": fidelity.HARD[1], "errors": {"gdn": [1e-3, 2e-3], "FLA": [2e-3, 3e-3]}},
        {"family": "gates x 50", "errors": {"gdn": [1e-3, 2e-3], "high": [5e-4, 1e-3], "FLA": [2e-3, 2e-3]}},
    ]
    held = {"default": [
        {"identity": "20 runs", "value": 0, "limit": 0, "holds": True},
        {"identity": "prefix", "value": 3, "limit": 0, "holds": False},
    ]}  # fmt: skip
    lines = fidelity.table(FACTS, families, held).splitlines()
    assert [line.split()[-4:] for line in lines if "no gates" in line] == [["2.0e-03", "2.0e-03", "0.50", "1.00"]]
    (hard,) = [line for line in lines if fidelity.HARD[1] in line]
    assert hard.endswith("0.50  0.67  above 0.5")
    (both,) = [line for line in lines if "gates x 50" in line]
    assert both.endswith("0.50  1.00   5.0e-04  1.0e-03   0.25  0.50  above 0.25")
    assert [line.split()[0] for line in lines if line.endswith("FAILS")] == ["prefix"]


def test_identities_hold_in_the_reference():
    """On CPU tensors and the numpy reference in place of kernels, so that the checks themselves are right."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    identities = load("identities")
    torch_device = {name: getattr(torch, name) for name in ("Generator", "randn", "tensor", "arange", "eye")}

    def on_cpu(function):
        return lambda *a, **k: function(*a, **{n: "cpu" if n == "device" else v for n, v in k.items()})

    def kernel(scale=None):
        def call(o, state, **x):
            arrays = {n: value.double().numpy() if n != "offsets" else value.numpy() for n, value in x.items()}
            out, final = ref.recurrence(**arrays, state=state.double().numpy(), scale=scale)
            return torch.from_numpy(out), torch.from_numpy(final)

        return call

    kernels = {name: kernel() for name in identities.kernels()}
    kernels.update({"scale of K 100": kernel(100**-0.5), "table": kernel(1.0)})
    with pytest.MonkeyPatch.context() as patch:
        for name, function in torch_device.items():
            patch.setattr(torch, name, on_cpu(function))
        patch.setattr(identities, "LENGTHS", (70, 1, 33))
        for name in ("no gate = gates of 0", "later tokens change nothing", "one-hot keys: a table",
                     "alone and in batches of 8", "grouped heads = repeated heads", "columns of V by halves",
                     "K 100 = K 128 with zeros", "equal gates per channel = per head", "split in time",
                     "equal keys, beta 1: scale (q k) v"):  # fmt: skip
            check, limit = identities.CHECKS[name]
            value = check(kernels)
            assert value <= (limit if limit == 0 else min(limit, 1e-2)), (name, value)


def test_what_is_compiled_beforehand():
    prefill, work = load("prefill"), load("workloads")
    tasks = prefill.warm_tasks(work.cells(["16/32", "6/6"], ["1x2048", "4096+4096"]), ["FLA", "FlashQLA"])
    assert tasks == [
        ("FLA", "16/32", 128, 128, "1x8192", "quarter"),
        ("FlashQLA", "16/32", 128, 128, "1x2048", "quarter"),
        ("FLA", "6/6", 256, 512, "1x8192", "quarter"),
    ]
    kinds = {task[5] for task in prefill.warm_tasks(work.cells(), ["FLA"])}
    assert kinds == {"quarter", work.LAYER, work.CHANNEL}
