# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times calls from CUDA graphs that rotate over sets of inputs, and checks what the timed graphs wrote."""

import contextlib
import gc
import os
import statistics
import time

START = time.monotonic()
BUSY_CYCLES = 500_000  # more than the host needs to hand a graph over
ROTATED_BYTES = 256 << 20  # above the L2 cache of every GPU here
SECONDS_PER_SIDE = 0.015
FEWEST, MOST = 5, 21


class Unsupported(Exception):
    """An implementation does not claim to compute this case; the message says why."""


def set_count(bytes_per_set, most=12):
    """Sets of inputs that keep the L2 cache from holding the next one."""
    return min(most, max(2, -(-ROTATED_BYTES // max(1, bytes_per_set))))


def replay_count(graph_seconds):
    return min(MOST, max(FEWEST, int(SECONDS_PER_SIDE / max(graph_seconds, 1e-9))))


_streams = []


def one_stream():
    """All captures use one stream, since gdn keeps a workspace for each; the graphs run one after the other."""
    import torch

    if not _streams:
        _streams.append(torch.cuda.Stream())
    return _streams[0]


class Side:
    """One implementation's graph: a call for each set of inputs.

    The implementation has `name`, `buffers(x)`, a dict of tensors that a call changes, and
    `call(x, buffers)`, which returns tensors. Those are compared with the expected ones, or what
    `finish(x, results)` makes of them, where there is one.
    """

    def __init__(self, implementation, sets):
        import torch

        self.implementation, self.sets = implementation, sets  # the graph uses what they hold
        self.name = implementation.name
        self.buffers = [implementation.buffers(x) for x in sets]
        self.initial = [{name: t.clone() for name, t in b.items()} for b in (self.buffers[0], self.buffers[-1])]
        torch.cuda.synchronize()
        start = time.perf_counter()
        stream = one_stream()
        with torch.cuda.stream(stream), torch.no_grad():
            implementation.call(sets[0], self.buffers[0])
            torch.cuda.synchronize()
            self.first_call = time.perf_counter() - start
            implementation.call(sets[-1], self.buffers[-1])
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            # Not torch.cuda.graph, which collects garbage first and takes longer than all the rest.
            self.graph.capture_begin()
            try:
                # All results are kept, so that no call writes where the one before it did.
                self.results = [implementation.call(x, b) for x, b in zip(sets, self.buffers)]
            except BaseException:
                with contextlib.suppress(RuntimeError):
                    self.graph.capture_end()
                raise
            self.graph.capture_end()
        self.times = []
        self.replay()
        self.replays = replay_count(self.replay() * 1e-6 * len(sets))
        self.times.clear()

    def replay(self):
        """Microseconds of one call."""
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The device is kept busy until the graph has been handed over: no host time is measured.
        torch.cuda._sleep(BUSY_CYCLES)
        begin.record()
        self.graph.replay()
        end.record()
        torch.cuda.synchronize()
        self.times.append(begin.elapsed_time(end) * 1e3 / len(self.sets))
        return self.times[-1]

    def errors(self, expected):
        """Largest relative errors of the results of the first and last set, from one replay; inf where not finite.

        `expected` has the results of the first and of the last set.
        """
        import torch

        import oracle_torch

        for buffers, initial in zip((self.buffers[0], self.buffers[-1]), self.initial):
            for name, tensor in buffers.items():
                tensor.copy_(initial[name])
        self.graph.replay()
        torch.cuda.synchronize()
        worst = [0.0] * len(expected[0])
        finish = getattr(self.implementation, "finish", lambda x, results: results)
        for place, wanted in zip((0, -1), expected):
            for i, (got, want) in enumerate(zip(finish(self.sets[place], self.results[place]), wanted)):
                error = oracle_torch.ratio(got.reshape(want.shape), want)
                worst[i] = max(worst[i], error if error == error else float("inf"))
        for results in self.results:
            for i in range(len(worst)):
                if not torch.isfinite(results[i]).all():
                    worst[i] = float("inf")
        return worst

    def summary(self):
        return {
            "median_us": statistics.median(self.times),
            "min_us": min(self.times),
            "max_us": max(self.times),
            "replays": len(self.times),
            "first_call_s": self.first_call,
        }


def sides(implementations, sets, log=print):
    """(sides that run, {name: reason, or None of those that run}) of (name, function that makes it)."""
    running, reasons = [], {}
    for name, make in implementations:
        reasons[name] = None
        try:
            running.append(Side(make(), sets))
        except Unsupported as reason:
            reasons[name] = {"unsupported": str(reason)}
        except Exception as error:  # a peer that fails must not end the measurement of the others
            text = f"{type(error).__name__}: {error}".strip()
            reasons[name] = {"failed": text[:600]}
            log(f"  {name} failed: {text[:300]}")
    return running, reasons


def measure(running):
    """Replays all sides in turns."""
    for turn in range(max((side.replays for side in running), default=0)):
        for side in running:
            if turn < side.replays:
                side.replay()


def release():
    """Gives memory back where much is held; graphs keep what they used until then."""
    import torch

    if torch.cuda.memory_reserved() > 60 << 30:
        gc.collect()
        torch.cuda.empty_cache()


def since_start():
    """Seconds since the process came here."""
    return time.monotonic() - START


def wait_for(path):
    """Until a file exists, where one is given: another process uses the GPU till then."""
    while path and not os.path.exists(path):
        time.sleep(0.05)


def calm():
    """No garbage collection from here on: it would fall into captures and cost more than they do."""
    gc.collect()
    gc.freeze()
    gc.disable()


def judge(running, rows, expected, limits, log):
    """Sets the rows of the sides: their times, and their errors against what expected() returns."""
    try:
        wanted = expected()
    except Exception as error:
        reason = f"no oracle: {type(error).__name__}: {error}"[:600]
        rows.update({side.name: {"failed": reason} for side in running})
        log(f"  {reason[:300]}")
        return
    for side in running:
        rows[side.name] = row = verdict(side, side.errors(wanted), limits)
        if not row["correct"]:
            log(f"  WRONG: {side.name}: o {row['error_o']:.1e}, state {row['error_state']:.1e}")


def verdict(side, errors, limits, names=("o", "state")):
    """The summary of a side with its errors."""
    row = side.summary()
    row.update({f"error_{name}": error for name, error in zip(names, errors)})
    row["correct"] = all(error <= limit for error, limit in zip(errors, limits))
    return row
