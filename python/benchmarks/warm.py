# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and tunes the libraries' kernels in processes of their own, so that the measurement finds all in caches.

FLA tunes each kernel for each head configuration, which takes 45 s one after the other; FlashQLA calls
nvcc for each. Processes compile side by side, but only one at a time runs candidates on the GPU.
"""

import contextlib
import fcntl
import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(tasks, processes, seconds, log=print, meanwhile=None):
    """Runs `python warm.py` with the words of each task (see main); returns {words: seconds or what failed}."""
    waiting, active, results = list(tasks), {}, {}
    os.environ.setdefault("GDN_WARM_LOCK", str(Path(tempfile.gettempdir()) / f"gdn-warm-{os.getpid()}.lock"))
    start = time.monotonic()
    while waiting or active or meanwhile:
        while waiting and len(active) < processes:
            task = waiting.pop(0)
            command = [sys.executable, str(HERE / "warm.py"), *map(str, task)]
            output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process runs)
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            active[task] = (process, output, time.monotonic())
        if meanwhile:
            meanwhile()
            meanwhile = None
        time.sleep(0.1)
        late = time.monotonic() - start > seconds
        for task, (process, output, since) in list(active.items()):
            if process.poll() is None and not late:
                continue
            if process.poll() is None:
                process.kill()
                process.wait()
            output.seek(0)
            said = output.read().strip().splitlines()
            took = time.monotonic() - since
            name = " ".join(map(str, task))
            results[name] = f"{took:.1f} s" if not process.returncode else f"failed after {took:.0f} s: {said[-1:]}"
            log(f"  warm {name}: {results[name]}")
            del active[task]
        if late:
            results.update({" ".join(map(str, task)): "no time left" for task in waiting})
            waiting = []
    return results


@contextlib.contextmanager
def alone():
    """Holds the GPU among the processes of one run."""
    with open(os.environ.get("GDN_WARM_LOCK", os.devnull), "a") as file:
        if "GDN_WARM_LOCK" in os.environ:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tune_alone():
    """Triton's tuner compiles a candidate first and holds the GPU only while it runs it, for 25 ms instead of 125."""
    from triton.runtime.autotuner import Autotuner
    from triton.testing import do_bench

    inner = Autotuner._bench

    def bench(self, *args, config, **meta):
        current = dict(meta, **config.all_kwargs())
        with contextlib.suppress(Exception):  # what fails here fails again below and is handled there
            self.fn.run(*args, **dict(current, warmup=True))
        self._do_bench = functools.partial(do_bench, warmup=5, rep=20)
        with alone():
            return inner(self, *args, config=config, **meta)

    Autotuner._bench = bench


def main(peer, heads, K, V, shape, gates):
    import torch

    import peers
    import workloads

    if peer == "FLA":
        tune_alone()
    cell = workloads.Cell(heads, shape, workloads.SHAPES[shape], int(K), int(V), gates)
    x = peers.prepare(cell, workloads.inputs(cell, 0), {})
    with torch.no_grad():
        side = peers.PEERS[peer](cell)
        side.call(x, side.buffers(x))
    torch.cuda.synchronize()


if __name__ == "__main__":
    main(*sys.argv[1:])
