# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs `gdn-compile` on textual IR and caches what it makes on disk (gdn.cache).

The tool is the one named by $GDN_COMPILE, else the one in the installed package, else
build/bin/gdn-compile of the repository this file lies in, else the one on PATH. An entry of the
cache is named by a hash of the IR, target, options and the content of the tool.

$GDN_PRECOMPILED names a folder written by `Compiled.save`. Entries found there are used
without looking for the tool; their names do not depend on it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from . import cache as disk
from .cache import CacheWarning  # noqa: F401
from .cache import directory as cache_directory
from .tools import CompileError, ToolNotFound, find  # noqa: F401  (the errors are part of this module)

FORMAT = 1
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
TOOL = "gdn-compile"


class Compiled:
    """PTX and manifest of one function."""

    def __init__(self, manifest, ptx, name=None):
        self.manifest = manifest
        self.ptx = ptx
        self.name = name

    @property
    def function(self):
        return self.manifest["function"]

    @property
    def target(self):
        return self.manifest["target"]

    def save(self, directory):
        """Writes the entry that $GDN_PRECOMPILED = `directory` finds again."""
        if self.name is None:
            raise ValueError(f"{self.function} was not made by gdn.compile and has no name to save it under")
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        disk.write(directory / self.name, self._entry())

    def _entry(self):
        return {"format": FORMAT, "name": self.name, "manifest": self.manifest, "ptx": self.ptx}

    def __repr__(self):
        return f"Compiled({self.function}, {self.target}, {len(self.manifest['launches'])} launches)"


def find_tool():
    """Path of gdn-compile, or ToolNotFound."""
    return find(TOOL)


def compile(ir, target="sm_90a", *, function=None, options=(), cache=True, timeout=600):
    """Compiles the one function of module text `ir` to PTX for `target`.

    `function` picks one where the module has several. `options` are further arguments of
    gdn-compile. `timeout` is in seconds. Raises CompileError with the tool's message.
    """
    if not isinstance(ir, str):
        raise TypeError(f"the IR must be text, not {type(ir).__name__}")
    if target not in TARGETS:
        raise CompileError(f"unknown target '{target}'; expected one of {', '.join(TARGETS)}")
    options = tuple(str(option) for option in options)
    content = _digest("content", FORMAT, ir, target, function, options)
    precompiled = os.environ.get("GDN_PRECOMPILED")
    if precompiled:
        compiled = _read_entry(Path(precompiled) / _file_name(content), content)
        if compiled is not None:
            return compiled
    tool = find_tool()
    entry = _entry_path(tool, content) if cache else None
    compiled = _read_entry(entry, content) if entry else None
    if compiled is None:
        compiled = _run(tool, ir, target, function, options, timeout)
        compiled.name = _file_name(content)
        if entry:
            disk.store(entry, compiled._entry())
    return compiled


def compile_host(ir, *, cache=True, timeout=600):
    """An ELF object (bytes) of module text `ir` for this processor; see gdn.host."""
    content = _digest("host", FORMAT, ir, _processor())
    tool = find_tool()
    entry = _entry_path(tool, content) if cache else None
    body = disk.read(entry) if entry else None
    if body is not None and body.get("name") == _file_name(content) and "object" in body:
        return base64.b64decode(body["object"])
    try:
        made = _run_host(tool, ir, timeout)
    except CompileError as error:
        # LLVM 22 fails on vectors of bf16 with 33 elements where the processor converts bf16
        # itself. Without such instructions it compiles them, ten times slower.
        if "soft promote" not in str(error):
            raise
        made = _run_host(tool, ir, timeout, "--host-features=-avx512bf16")
    if entry:
        disk.store(entry, {"name": _file_name(content), "object": base64.b64encode(made).decode()})
    return made


# --- keys -------------------------------------------------------------------------


def _digest(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file_name(key):
    return f"{key[:40]}.gdn"


def _entry_path(tool, content):
    directory = cache_directory()
    if directory is None:
        return None
    return directory / _file_name(_digest("entry", content, _tool_hash(*_identity(tool))))


@functools.lru_cache(maxsize=1)
def _processor():
    """What the code of this processor may depend on."""
    try:
        text = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    except OSError:
        return ""
    return sorted(line for line in text.splitlines() if line.startswith(("model", "flags", "vendor", "cpu family")))


def _identity(tool):
    status = os.stat(tool)
    return os.path.realpath(tool), status.st_size, status.st_mtime_ns, status.st_ino


@functools.lru_cache(maxsize=8)
def _tool_hash(path, size, modified, inode):
    """Names the content; the other arguments notice that the file has been replaced.

    It is the linker's hash, which the program has at its start: to read all of the packaged program takes
    longer than all else of a warm first call. A hash of all of another file is kept in the cache.
    """
    linked = _build_id(path)
    if linked:
        return linked
    folder = cache_directory()
    entry = folder / _file_name("tool-" + _digest("tool", path, size, modified, inode)) if folder else None
    body = disk.read(entry) if entry else None
    if body is not None and body.get("name") == entry.name:
        return body["content"]
    content = _content_hash(path)
    if entry:
        disk.store(entry, {"name": entry.name, "content": content})
    return content


_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3


def _build_id(path):
    """The hash that the linker has put into an ELF program, or None where there is none of 16 bytes or more."""
    with open(path, "rb") as file:
        head = file.read(1 << 12)
    try:
        if head[:6] != b"\x7fELF\x02\x01":
            return None
        (start,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        for place in range(start, start + size * count, size):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", head, place)
            end = offset + length if kind == _PT_NOTE else 0
            while end and offset + 12 <= end:
                named, long, kind = struct.unpack_from("<III", head, offset)
                content = offset + 12 + -(-named // 4) * 4
                if kind == _NT_GNU_BUILD_ID and head[offset + 12 : offset + 16] == b"GNU\0" and long >= 16:
                    return "build-id " + struct.unpack_from(f"{long}s", head, content)[0].hex()
                offset = content + -(-long // 4) * 4
    except struct.error:  # what was read ends in front of it
        pass
    return None


def _content_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_entry(path, content):
    """The entry, or None where there is none or it is another's (then with a warning)."""
    entry = disk.read(path)
    if entry is None:
        return None
    if entry.get("format") != FORMAT or entry.get("name") != _file_name(content):
        disk.warn(f"the cache entry {path} belongs to another compilation; compiling again")
        return None
    return Compiled(entry["manifest"], entry["ptx"], entry["name"])


# --- the tool ---------------------------------------------------------------------


def _run(tool, ir, target, function, options, timeout):
    return _in_folder(
        lambda output: _collect(output, function), tool, ir, timeout, [f"--target={target}", "--to=ptx"], options
    )


def _run_host(tool, ir, timeout, *options):
    return _in_folder(lambda output: next(output.glob("*.o")).read_bytes(), tool, ir, timeout, ["--to=object"], options)


def _in_folder(collect, tool, ir, timeout, mode, options):
    """Runs the tool on `ir` and returns what `collect` makes of the folder it wrote."""
    try:
        with tempfile.TemporaryDirectory(prefix="gdn-") as folder:
            source = Path(folder) / "input.mlir"
            source.write_text(ir)
            output = Path(folder) / "out"
            output.mkdir()
            _call([tool, str(source), *mode, "-o", str(output), *options], timeout)
            return collect(output)
    except OSError as error:
        place = error.filename or tempfile.gettempdir()
        raise CompileError(f"cannot compile: {error.strerror} ({place})") from error


def _call(command, timeout):
    # The packaged program is the tool by whose name it is called.
    named = [TOOL, *command[1:]]
    try:
        done = subprocess.run(
            named, executable=command[0], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise CompileError(f"{command[0]} did not end within {timeout} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or "it printed nothing"
        raise CompileError(f"{TOOL} failed (exit status {done.returncode}):\n{said}")


def _collect(output, function):
    manifests = {path.stem: path for path in sorted(output.glob("*.json"))}
    if function is None:
        if len(manifests) != 1:
            names = ", ".join(manifests) or "none"
            raise CompileError(f"one function was expected, but the module gave: {names}; name one with `function`")
        function = next(iter(manifests))
    if function not in manifests:
        raise CompileError(f"the module has no function '{function}'; it gave: {', '.join(manifests) or 'none'}")
    manifest = json.loads(manifests[function].read_text())
    if manifest.get("version") != 1:
        raise CompileError(f"the manifest of '{function}' has version {manifest.get('version')}; expected 1")
    ptx_name = manifest["ptx"]
    if not re.fullmatch(r"[^/]+", ptx_name):
        raise CompileError(f"the manifest of '{function}' names '{ptx_name}', which is no file name")
    return Compiled(manifest, (output / ptx_name).read_text())
