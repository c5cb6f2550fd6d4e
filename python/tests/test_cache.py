# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.cache: bounded, movable, clearable, shared by processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gdn import cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GDN_CACHE_BYTES", raising=False)
    return tmp_path / "cache"


def store(folder, name, letters=1000, used=None):
    path = folder / f"{name}.gdn"
    cache.store(path, {"text": "x" * letters})
    if used is not None:
        os.utime(path, (used, used))
    return path


def test_place_size_and_clear(folder, monkeypatch):
    assert cache.directory() == folder and cache.size() == 0
    path = store(folder, "a")
    assert cache.size() == path.stat().st_size > 1000
    other = folder / "notes.txt"
    other.write_text("not ours")
    cache.clear()
    assert cache.size() == 0 and not path.exists() and other.exists()
    assert cache.read(path) is None
    monkeypatch.setenv("GDN_CACHE_DIR", "")
    assert cache.directory() is None and cache.size() == 0
    cache.clear()


def test_the_entries_used_longest_ago_go_first(folder, monkeypatch):
    a, b, c = (store(folder, name, used=100 + i) for i, name in enumerate("abc"))
    assert cache.read(a)["text"]  # a is now the one used last
    monkeypatch.setenv("GDN_CACHE_BYTES", "3400")
    d = store(folder, "d")
    assert [p.exists() for p in (a, b, c, d)] == [True, False, True, True]
    monkeypatch.setenv("GDN_CACHE_BYTES", "10")
    e = store(folder, "e")
    assert [p.exists() for p in (a, c, d, e)] == [False, False, False, True], "the new entry itself stays"


def test_files_of_processes_that_ended_are_removed(folder):
    store(folder, "a")
    old, new = folder / ".tmp-old", folder / ".tmp-new"
    for file in (old, new):
        file.write_text("half an entry")
    os.utime(old, (0, 0))
    store(folder, "b")
    assert not old.exists() and new.exists()


def test_bad_limit(folder, monkeypatch):
    monkeypatch.setenv("GDN_CACHE_BYTES", "1 GB")
    with pytest.raises(ValueError, match=r"\$GDN_CACHE_BYTES is '1 GB', which is no number of bytes"):
        cache.limit()


PROCESS = """
import sys
from pathlib import Path
from gdn import cache
folder, me = Path(sys.argv[1]), sys.argv[2]
for i in range(60):
    path = folder / f"{i % 7}.gdn"
    cache.store(path, {"text": me * 2000, "i": i})
    for other in range(7):
        body = cache.read(folder / f"{other}.gdn")
        assert body is None or len(set(body["text"])) == 1, "an entry of two writers"
    if i % 20 == 19:
        cache.clear()
"""


def test_processes_share_the_cache(folder):
    environment = dict(os.environ, PYTHONPATH=str(Path(cache.__file__).parents[1]), GDN_CACHE_BYTES="9000")
    command = [sys.executable, "-W", "error", "-c", PROCESS, str(folder)]
    running = [subprocess.Popen([*command, letter], env=environment) for letter in "abcd"]
    assert [process.wait(120) for process in running] == [0] * 4
