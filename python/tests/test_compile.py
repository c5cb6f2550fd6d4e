# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.compile: the cache with a stand-in for the compiler, then the real compiler."""

import errno
import hashlib
import json
import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from gdn import build, cache, tools
from gdn import compile as compiler
from gdn.compile import CacheWarning, CompileError, ToolNotFound

# Writes what gdn-compile would and counts its calls in a file beside it.
STAND_IN = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    calls.write("x")
source = open(sys.argv[1]).read()
target = next(a for a in sys.argv if a.startswith("--target=")).split("=")[1]
if "broken" in source:
    sys.exit("input.mlir:3:1: error: the op is broken: 3 and 2")
out = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
for name in source.split("functions:")[1].split():
    manifest = dict(version=1, target=target, function=name, ptx=name + ".ptx",
                    arguments=[], buffers=[], results=[], launches=[])
    (out / (name + ".json")).write_text(json.dumps(manifest))
    (out / (name + ".ptx")).write_text("// ptx of " + source + " " + " ".join(sys.argv[6:]))
"""


class Tool:
    def __init__(self, folder):
        self.path = folder / "gdn-compile"
        self.path.write_text(STAND_IN.format(python=sys.executable))
        self.path.chmod(0o755)

    @property
    def calls(self):
        file = self.path.parent / "calls"
        return len(file.read_text()) if file.exists() else 0


@pytest.fixture
def tool(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    tool = Tool(tmp_path / "bin")
    monkeypatch.setenv("GDN_COMPILE", str(tool.path))
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GDN_PRECOMPILED", raising=False)
    return tool


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def entries(tmp_path):
    return sorted(path for path in (tmp_path / "cache").glob("*") if not path.name.startswith("tool-"))


def test_the_tool_is_read_once(tool, tmp_path, monkeypatch):
    compiler.compile("functions: forward", "sm_80")
    (kept,) = (tmp_path / "cache").glob("tool-*.gdn")
    # Another process finds what is kept.
    compiler._tool_hash.cache_clear()
    monkeypatch.setattr(compiler, "_content_hash", None)
    compiler.compile("functions: forward", "sm_80")
    assert tool.calls == 1
    # Another tool in the same place is another compiler, and a broken file no answer.
    monkeypatch.undo()
    monkeypatch.setenv("GDN_COMPILE", str(tool.path))
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path / "cache"))
    kept.write_bytes(b"")
    compiler._tool_hash.cache_clear()
    with pytest.warns(UserWarning):
        compiler.compile("functions: forward", "sm_80")
    assert tool.calls == 1
    tool.path.write_text(tool.path.read_text() + "# another\n")
    compiler.compile("functions: forward", "sm_80")
    assert tool.calls == 2


def program(build_id, notes=b"", kind=4):
    """The start of an ELF program with one segment of notes."""
    note = notes + struct.pack("<III4s", 4, len(build_id), 3, b"GNU") + build_id
    header = struct.pack("<4sBB10xHHIQQQIHHH", b"\x7fELF", 2, 1, 2, 62, 1, 0, 64, 0, 0, 64, 56, 1).ljust(64, b"\0")
    return header + struct.pack("<IIQQQQQQ", kind, 4, 120, 0, 0, len(note), 0, 4) + note


def test_a_linked_tool_has_its_hash_at_its_start(tmp_path, monkeypatch):
    """No other byte of it is read; without such a hash the content is what counts."""
    path, ours, abi = tmp_path / "tool", bytes(range(20)), struct.pack("<III4s16x", 4, 16, 1, b"GNU")
    for notes in (b"", abi, abi + struct.pack("<III4s4s", 2, 1, 7, b"A", b"x")):
        path.write_bytes(program(ours, notes))
        assert compiler._build_id(path) == "build-id " + ours.hex()
    whole = program(ours, abi)
    for other in (program(ours[:8]), program(ours, kind=1), whole[:-1], whole[:100], b"\x7fELF", b"#!/bin/sh\n", b""):
        path.write_bytes(other)
        assert compiler._build_id(path) is None
        assert compiler._tool_hash(str(path), 0, 0, hash(other)) == hashlib.sha256(other).hexdigest()
    monkeypatch.setattr(compiler, "_content_hash", None)
    path.write_bytes(whole)
    assert compiler._tool_hash(str(path), 0, 0, -1) == "build-id " + ours.hex()


def test_the_compiler_has_such_a_hash(gdn_compile):
    assert compiler._build_id(gdn_compile).startswith("build-id ")


def test_second_call_comes_from_the_cache(tool, tmp_path):
    first = compiler.compile("functions: forward", "sm_80")
    second = compiler.compile("functions: forward", "sm_80")
    assert tool.calls == 1
    assert first.ptx == second.ptx
    assert first.manifest == second.manifest
    assert (first.function, first.target) == ("forward", "sm_80")
    assert [path.suffix for path in entries(tmp_path)] == [".gdn"]


def test_everything_that_matters_is_in_the_key(tool):
    compiler.compile("functions: forward", "sm_80")
    compiler.compile("functions: forward ", "sm_80")
    compiler.compile("functions: forward", "sm_90a")
    compiler.compile("functions: forward", "sm_80", options=["--ptx-version=80"])
    compiler.compile("functions: forward", "sm_80", function="forward")
    assert tool.calls == 5
    status = os.stat(tool.path)
    tool.path.write_text(tool.path.read_text() + "# another compiler\n")
    os.utime(tool.path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    compiler.compile("functions: forward", "sm_80")
    assert tool.calls == 6


def test_options_reach_the_tool(tool):
    assert "--verbose" in compiler.compile("functions: f", options=["--verbose"]).ptx


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_corrupt_entry_is_compiled_again(tool, tmp_path, damage):
    good = compiler.compile("functions: forward")
    (entry,) = entries(tmp_path)
    data = entry.read_bytes()
    if damage == "flip":
        data = data.replace(b"ptx of", b"ptx 0f")
    elif damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "empty":
        data = b""
    else:
        compiler.compile("functions: other")
        (other,) = [path for path in entries(tmp_path) if path != entry]
        data = other.read_bytes()
    entry.write_bytes(data)
    calls = tool.calls
    with pytest.warns(CacheWarning, match=str(entry)):
        again = compiler.compile("functions: forward")
    assert again.ptx == good.ptx
    assert tool.calls == calls + 1
    assert compiler.compile("functions: forward").ptx == good.ptx
    assert tool.calls == calls + 1


def test_cache_that_cannot_be_written(tool, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(CacheWarning):
        assert compiler.compile("functions: forward").function == "forward"


def test_full_disk_below_the_cache(tool, tmp_path, monkeypatch):
    def full(path, compiled):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(cache, "write", full)
    with pytest.warns(CacheWarning, match="No space left on device"):
        assert compiler.compile("functions: forward").function == "forward"
    assert entries(tmp_path) == []


def test_failed_write_leaves_nothing(tool, tmp_path, monkeypatch):
    def full(source, destination):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), destination)

    monkeypatch.setattr(compiler.os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left"):
        compiler.compile("functions: forward")
    assert entries(tmp_path) == []


def test_full_disk_below_the_temporary_folder(tool, monkeypatch):
    def full(self, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CompileError, match=r"No space left on device \(.*input.mlir"):
        compiler.compile("functions: forward")


def test_cache_can_be_off(tool, monkeypatch, tmp_path):
    compiler.compile("functions: forward", cache=False)
    monkeypatch.setenv("GDN_CACHE_DIR", "")
    compiler.compile("functions: forward")
    assert tool.calls == 2
    assert not (tmp_path / "cache").exists()


def test_default_folder(monkeypatch):
    monkeypatch.delenv("GDN_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert compiler.cache_directory() == Path("/x/gdn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert compiler.cache_directory() == Path("/somewhere/.cache/gdn")


def test_concurrent_processes(tool, tmp_path):
    program = (
        "from gdn.compile import compile\n"
        "import warnings; warnings.simplefilter('error')\n"
        "for i in range(20):\n"
        "    assert compile('functions: forward' + ' ' * (i % 4)).function == 'forward'\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(Path(compiler.__file__).parents[1]))
    processes = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE) for _ in range(6)
    ]
    for process in processes:
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr.decode()
    assert len(entries(tmp_path)) == 4
    for entry in entries(tmp_path):
        checksum, _, body = entry.read_bytes().partition(b"\n")
        assert json.loads(body)["format"] == compiler.FORMAT


def test_tool_error_is_shown(tool, tmp_path):
    with pytest.raises(CompileError, match=r"gdn-compile failed \(exit status 1\):\n.*the op is broken: 3 and 2"):
        compiler.compile("broken functions: forward")
    assert entries(tmp_path) == []


def test_unknown_target(tool):
    with pytest.raises(CompileError, match="unknown target 'sm_70'; expected one of sm_80, .*sm_120"):
        compiler.compile("functions: forward", "sm_70")
    assert tool.calls == 0


def test_several_functions(tool):
    with pytest.raises(CompileError, match="the module gave: a, b"):
        compiler.compile("functions: a b")
    assert compiler.compile("functions: a b", function="b").function == "b"
    with pytest.raises(CompileError, match="no function 'c'; it gave: a, b"):
        compiler.compile("functions: a b", function="c")


def test_missing_tool(monkeypatch, tmp_path):
    monkeypatch.setenv("GDN_COMPILE", str(tmp_path / "none"))
    with pytest.raises(ToolNotFound, match=r"\$GDN_COMPILE is '.*none', which is no executable file"):
        compiler.compile("functions: forward")
    monkeypatch.delenv("GDN_COMPILE")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "PACKAGED", tmp_path / "a")
    monkeypatch.setattr(tools, "BUILT", tmp_path / "b")
    with pytest.raises(ToolNotFound, match="gdn-compile was not found"):
        compiler.compile("functions: forward")


def test_tool_on_path_beside_the_repository_and_in_the_package(tool, monkeypatch, tmp_path):
    monkeypatch.delenv("GDN_COMPILE")
    monkeypatch.setenv("PATH", str(tool.path.parent))
    built, packaged = tmp_path / "built", tmp_path / "gdn-tools"
    monkeypatch.setattr(tools, "PACKAGED", packaged)
    monkeypatch.setattr(tools, "BUILT", built)
    assert compiler.find_tool() == str(tool.path)
    built.mkdir()
    (built / "gdn-compile").symlink_to(tool.path)
    assert compiler.find_tool() == str(built / "gdn-compile")
    packaged.symlink_to(tool.path)
    assert compiler.find_tool() == str(packaged)


def test_packaged_program_is_called_by_the_name_of_the_tool(tool, monkeypatch, tmp_path):
    monkeypatch.delenv("GDN_COMPILE")
    packaged = tmp_path / "gdn-tools"
    packaged.write_text(f'#!/bin/bash\nexec -a "$0" {tool.path} "$@"\n')
    packaged.chmod(0o755)
    monkeypatch.setattr(tools, "PACKAGED", packaged)
    seen = {}
    run = subprocess.run

    def spy(command, **options):
        seen.update(name=command[0], program=options["executable"])
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", spy)
    compiler.compile("functions: forward")
    assert seen == {"name": "gdn-compile", "program": str(packaged)}


def test_precompiled_needs_no_tool(tool, monkeypatch, tmp_path):
    compiled = compiler.compile("functions: forward", "sm_80", options=["--x"])
    compiled.save(tmp_path / "shipped")
    monkeypatch.setenv("GDN_COMPILE", str(tmp_path / "none"))
    monkeypatch.setenv("GDN_PRECOMPILED", str(tmp_path / "shipped"))
    assert compiler.compile("functions: forward", "sm_80", options=["--x"]).ptx == compiled.ptx
    with pytest.raises(ToolNotFound):
        compiler.compile("functions: forward", "sm_90a", options=["--x"])


def test_import_needs_neither_numpy_nor_torch():
    program = (
        "import sys\n"
        "sys.modules['numpy'] = sys.modules['torch'] = None\n"
        "import gdn, gdn.compile, gdn.launch, gdn.build\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(Path(compiler.__file__).parents[1]))
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)


# the real compiler


@pytest.mark.parametrize("target", compiler.TARGETS)
def test_compiles_for_every_target(gdn_compile, target, tmp_path, monkeypatch):
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path))
    compiled = compiler.compile(build.recurrence(1, None, 2, 4, 64, 64, gate="head", beta=True), target)
    assert compiled.target == target
    assert compiled.function == "forward"
    assert [a["name"] for a in compiled.manifest["arguments"]] == ["q", "k", "v", "gate", "beta", "o", "state"]
    assert compiled.manifest["arguments"][0]["shape"] == [1, None, 2, 64]
    assert compiled.manifest["results"] == [{"argument": 5}, {"argument": 6}]
    for launch in compiled.manifest["launches"]:
        assert f".entry {launch['kernel']}" in compiled.ptx
    assert f".target {target}" in compiled.ptx


def test_real_tool_refuses_an_unknown_target(gdn_compile, tmp_path):
    source = tmp_path / "x.mlir"
    source.write_text(build.recurrence(1, 64, 2, 4, 64, 64, beta=True))
    output = tmp_path / "out"
    output.mkdir()
    command = [gdn_compile, str(source), "--target=sm_70", "--to=ptx", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "sm_70" in done.stderr
    assert list(output.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this is no IR", ["error"]),
        (build.recurrence(1, 8, 2, 3, 16, 16, beta=True), ["error", "3", "2"]),
        (build.recurrence(1, 8, 2, 4, 16, 16, beta=True).replace("4x16x16xf32", "5x16x16xf32"), ["error", "5", "4"]),
        (build.recurrence(2, 8, 2, 4, 16, 16, beta=True, N=3, offsets="i32"), ["error", "2"]),
    ],
)
def test_real_tool_refuses_bad_input(gdn_compile, text, words, tmp_path, monkeypatch):
    monkeypatch.setenv("GDN_CACHE_DIR", str(tmp_path))
    with pytest.raises(CompileError) as caught:
        compiler.compile(text)
    assert all(word in str(caught.value) for word in words)
