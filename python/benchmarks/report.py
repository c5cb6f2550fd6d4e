# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts of the machine, and tables, JSON files and charts of the benchmarks."""

import datetime
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

import timing

OURS = "gdn"
PACKAGES = ("torch", "triton", "fla-core", "flash-qla", "tilelang", "flashinfer-python", "nvidia-cutlass-dsl")


# --- facts and files --------------------------------------------------------------


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def command(*words):
    here = Path(__file__).parent
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=30, cwd=here).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def machine():
    import torch

    import gdn
    from gdn.driver import driver

    cuda = driver().version()
    facts = {
        "gpu": torch.cuda.get_device_name(),
        "driver": command("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "clocks": command("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader"),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "python": sys.version.split()[0],
        "target": os.environ.get("GDN_TARGET") or gdn.device_target(),
        "commit": os.environ.get("GDN_COMMIT") or command("git", "rev-parse", "--short", "HEAD"),
        "date": datetime.date.today().isoformat(),
    }
    facts.update({package: version(package) for package in PACKAGES})
    return facts


class Log:
    """The rows of one run; each is on disk as soon as it is measured, so that a crash loses one cell."""

    def __init__(self, folder, name, facts):
        self.folder, self.facts, self.rows = Path(folder), facts, []
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stem = "-".join([name, facts["gpu"].replace(" ", "_"), facts["date"]])

    def note(self, text):
        print(text, flush=True)

    def add(self, row):
        self.rows.append(row)
        name = " ".join(str(row[key]) for key in ("heads", "shape", "gates", "work") if key in row)
        print(f"{timing.since_start():6.1f} s  {name:34} {one_line(row)}", flush=True)
        self.write("json", json.dumps({"machine": self.facts, "rows": self.rows}, indent=1) + "\n")

    def finish(self, table, chart=None):
        self.write("txt", table + "\n")
        if chart:
            self.write("svg", chart)
        print(f"\n{table}\n\nwritten to {self.folder / self.stem}.*")

    def write(self, suffix, text):
        (self.folder / f"{self.stem}.{suffix}").write_text(text)


def save(folder, name, facts, content, text):
    """A run that is written at once: text, and JSON with the facts of the machine."""
    log = Log(folder, name, facts)
    log.write("json", json.dumps({"machine": facts, **content}, indent=1) + "\n")
    log.write("txt", text)


def one_line(row):
    parts = []
    for name, side in row["sides"].items():
        if "median_us" in side:
            parts.append(f"{name} {side['median_us']:.1f}" + ("" if side["correct"] else " WRONG"))
        else:
            parts.append(f"{name} {'failed' if 'failed' in side else '-'}")
    return ", ".join(parts)


def origin(facts):
    return f"{facts['gpu']}, driver {facts['driver']}, {facts['date']}, commit {facts['commit']}"


def describe(facts):
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value and name != "warm")


# --- prefill ----------------------------------------------------------------------


def time_of(row, name):
    side = row["sides"].get(name, {})
    return side.get("median_us") if side.get("correct") else None


def fastest_peer(row):
    """(name, time) of the fastest library with correct results, or None."""
    times = [(time_of(row, name), name) for name in row["sides"] if not is_ours(name) and time_of(row, name)]
    return min(times, default=None)


def cell_text(side):
    if side is None:
        return "-"
    if "median_us" in side:
        return f"{side['median_us']:.1f}" + ("" if side["correct"] else "!")
    return "failed" if "failed" in side else "-"


def is_ours(name):
    """gdn, and gdn with its sizes in the other form."""
    return name.split()[0] == OURS


def other_names(rows):
    return list(dict.fromkeys(name for row in rows for name in row["sides"] if name != OURS))


def geometric(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else float("nan")


def ratio(row, name):
    ours, theirs = time_of(row, OURS), time_of(row, name)
    return theirs / ours if ours and theirs else None


def prefill_table(facts, rows):
    names = other_names(rows)
    lines = [
        describe(facts),
        "Microseconds a call, median of graph replays, inputs rotated; bf16 q, k, v, o, float32 gates and state, with",
        "initial and final state. floor: larger of products at 790 TFLOP/s and traffic at 4.3 TB/s.",
        "",
    ]
    head = f"{'heads':>6} {'K/V':>8} {'sequences':18} {'gates':8} {'floor':>7} {OURS:>9}"
    head += "".join(f" {name:>13}" for name in names)
    lines.append(head + f" {'best/gdn':>9} {'FLA/gdn':>8}  {'error o, state':>16}")
    previous = None
    for row in rows:
        group = (row["heads"], row["K"], row["gates"])
        if previous not in (None, group):
            lines.append("")
        previous = group
        lines.append(prefill_line(row, names))
    reasons = sorted({f"{name}: {why}" for row in rows for name, why in refusals(row)})
    lines += ["", *prefill_summary(rows, names), "", "!: wrong result (o above 8e-3, state above 1e-2, or not finite)"]
    return "\n".join(lines + reasons)


def prefill_line(row, names):
    ours = row["sides"].get(OURS)
    text = f"{row['heads']:>6} {row['K']:>4}/{row['V']:<3} {row['shape']:18} {row['gates']:8} {row['floor_us']:7.1f}"
    text += f" {cell_text(ours):>9}" + "".join(f" {cell_text(row['sides'].get(name)):>13}" for name in names)
    best = fastest_peer(row)
    for value in (ratio(row, best[1]) if best else None, ratio(row, "FLA")):
        text += f" {value:9.2f}" if value else f" {'-':>9}"
    if ours and "error_o" in ours:
        text += f"  {ours['error_o']:.1e} {ours['error_state']:.1e}"
    return text


def refusals(row):
    for name, side in row["sides"].items():
        for key in ("unsupported", "failed"):
            if key in side:
                yield name, f"{key}: {side[key][:200]}"


def prefill_summary(rows, names):
    """Lines that count the cells in which gdn is the fastest, and by how much."""
    lines = []
    compared = [row for row in rows if time_of(row, OURS) and fastest_peer(row)]
    leads = [ratio(row, fastest_peer(row)[1]) for row in compared]
    if leads:
        slower = [f"{row['heads']} {row['shape']} {row['gates']}" for row, lead in zip(compared, leads) if lead <= 1]
        lines.append(
            f"gdn is faster than the fastest library in {sum(lead > 1 for lead in leads)} of {len(leads)} cells, "
            f"1.5x in {sum(lead >= 1.5 for lead in leads)}; "
            f"least {min(leads):.2f}, geometric mean {geometric(leads):.2f}"
        )
        if slower:
            lines.append("not faster in: " + "; ".join(slower[:40]) + (" ..." if len(slower) > 40 else ""))
    for name in names:
        ratios = [r for r in (ratio(row, name) for row in rows) if r]
        if ratios:  # that of the other form of gdn says what compiled sizes are worth
            means = f"least {min(ratios):.2f}, geometric mean {geometric(ratios):.2f}"
            lines.append(f"{name}/gdn: {means}, {len(ratios)} cells")
    wrong = [f"{name} in {row['heads']} {row['shape']} {row['gates']}" for row in rows
             for name, side in row["sides"].items() if side.get("correct") is False]  # fmt: skip
    if wrong:
        lines.append("wrong: " + "; ".join(wrong[:20]))
    return lines


def prefill_chart(facts, rows):
    """A panel for each head configuration: all shapes of the first gate set."""
    import chart

    groups = {}
    for row in rows:
        if row["gates"] != rows[0]["gates"]:
            continue
        sizes = "" if row["K"] == row["V"] == 128 else f", K/V {row['K']}/{row['V']}"
        series = {name: time_of(row, name) for name in row["sides"]}
        series[chart.FLOOR] = row["floor_us"]
        groups.setdefault(f"heads {row['heads']}{sizes}", {})[row["shape"]] = series
    return chart.panels("Prefill of the gated delta rule", f"{origin(facts)}; microseconds a call", groups)


# --- decode -----------------------------------------------------------------------

COPY = "copy"


def share(row, name):
    """Percent of the copy's speed."""
    ours, copy = time_of(row, name), time_of(row, COPY)
    return 100 * copy / ours if ours and copy else None


def decode_table(facts, rows):
    names = [OURS] + [name for name in other_names(rows) if name != COPY]
    lines = [
        describe(facts),
        "Microseconds a call, median of graph replays, pools in turn; heads 16/32 of 128, bf16 q, k, v, o. copy: in",
        "place, through the slots, TB/s of state read and written. In brackets percent of the copy's speed, which",
        "moves no q, k, v and o.",
        "",
        f"{'T':>2} {'state':>5} {'B':>5} {COPY:>9} {'TB/s':>5}" + "".join(f" {name:>16}" for name in names)
        + "   error o, state",
    ]  # fmt: skip
    previous = None
    for row in rows:
        if previous not in (None, (row["T"], row["state"])):
            lines.append("")
        previous = (row["T"], row["state"])
        copy = row["sides"][COPY]["median_us"]
        text = f"{row['T']:>2} {row['state']:>5} {row['B']:>5} {copy:9.2f} {2 * row['state_bytes'] / copy * 1e-6:5.2f}"
        for name in names:
            side, percent = row["sides"].get(name), share(row, name)
            text += f" {cell_text(side) + (f' ({percent:.0f} %)' if percent else ''):>16}"
        ours = row["sides"].get(OURS, {})
        if "error_o" in ours:
            text += f"   {ours['error_o']:.1e} {ours['error_state']:.1e}"
        lines.append(text)
    reasons = sorted({f"{name}: {why}" for row in rows for name, why in refusals(row)})
    return "\n".join([*lines, "", "!: wrong result (o above 8e-3, state above 1e-2, or not finite)", *reasons])


def decode_chart(facts, rows):
    """A panel for each T and type of state: percent of the copy's speed over the batch."""
    import chart

    groups = {}
    for row in rows:
        series = {name: share(row, name) for name in row["sides"] if name != COPY}
        groups.setdefault(f"T = {row['T']}, state {row['state']}", {})[f"B = {row['B']}"] = series
    subtitle = f"{origin(facts)}; percent of the speed of an in-place copy"
    return chart.panels("Decode and verify of the gated delta rule", subtitle, groups, 4, "%", chart.Percent)


def main(names):
    """Writes text and chart of JSON files again, as for a run that was cut off."""
    kinds = {"prefill": (prefill_table, prefill_chart), "decode": (decode_table, decode_chart)}
    for path in map(Path, names):
        kind = path.name.split("-")[0]
        if kind not in kinds:
            sys.exit(f"{path.name} is no result of {' or '.join(kinds)}")
        stored = json.loads(path.read_text())
        table, drawing = (make(stored["machine"], stored["rows"]) for make in kinds[kind])
        path.with_suffix(".txt").write_text(table + "\n")
        path.with_suffix(".svg").write_text(drawing)
        print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
