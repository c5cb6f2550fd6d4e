# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs `gdn-compile` on textual IR and caches its PTX and manifest on disk.

The tool is the one named by $GDN_COMPILE, else the one in the installed package, else
build/bin/gdn-compile of the repository this file lies in, else the one on PATH. The cache is $GDN_CACHE_DIR, by default
~/.cache/gdn; an empty $GDN_CACHE_DIR turns it off. An entry is one file, named by a hash
of the IR, target, options and the content of the tool, and starts with a checksum of the
rest. It is written under a temporary name and renamed, so processes can share the cache.

$GDN_PRECOMPILED names a folder written by `Compiled.save`. Entries found there are used
without looking for the tool; their names do not depend on it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

from .tools import CompileError, ToolNotFound, find  # noqa: F401  (the errors are part of this module)

FORMAT = 1
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
TOOL = "gdn-compile"


class CacheWarning(UserWarning):
    """The cache could not be used; the compilation went on without it."""


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
        _write_entry(directory / self.name, self)

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
    entry = None
    directory = cache_directory() if cache else None
    if directory is not None:
        key = _digest("entry", content, _tool_hash(*_identity(tool)))
        entry = directory / _file_name(key)
        compiled = _read_entry(entry, content)
        if compiled is not None:
            return compiled
    compiled = _run(tool, ir, target, function, options, timeout)
    compiled.name = _file_name(content)
    if entry is not None:
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            _write_entry(entry, compiled)
        except OSError as error:
            _warn(f"cannot write the cache entry {entry}: {error.strerror}; compiling without a cache")
    return compiled


def cache_directory():
    """Folder of the cache, or None where $GDN_CACHE_DIR is set to nothing."""
    named = os.environ.get("GDN_CACHE_DIR")
    if named is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        return Path(base) / "gdn"
    return Path(named) if named else None


# --- keys -------------------------------------------------------------------------


def _digest(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _file_name(key):
    return f"{key[:40]}.gdn"


def _identity(tool):
    status = os.stat(tool)
    return os.path.realpath(tool), status.st_size, status.st_mtime_ns, status.st_ino


@functools.lru_cache(maxsize=8)
def _tool_hash(path, size, modified, inode):
    """Content hash; the other arguments notice that the file has been replaced."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# --- entries ----------------------------------------------------------------------


def _warn(message):
    warnings.warn(message, CacheWarning, stacklevel=4)


def _write_entry(path, compiled):
    """Atomic: the file appears under its name complete or not at all."""
    body = {"format": FORMAT, "name": compiled.name, "manifest": compiled.manifest, "ptx": compiled.ptx}
    data = json.dumps(body).encode()
    checksum = hashlib.sha256(data).hexdigest().encode()
    descriptor, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(checksum + b"\n" + data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _read_entry(path, content):
    """The entry, or None where there is none or it is damaged (then with a warning)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"cannot read the cache entry {path}: {error.strerror}; compiling again")
        return None
    checksum, _, body = data.partition(b"\n")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        _warn(f"the cache entry {path} is corrupt (its checksum does not match); compiling again")
        return None
    entry = json.loads(body)
    if entry["format"] != FORMAT or entry["name"] != _file_name(content):
        _warn(f"the cache entry {path} belongs to another compilation; compiling again")
        return None
    return Compiled(entry["manifest"], entry["ptx"], entry["name"])


# --- the tool ---------------------------------------------------------------------


def _run(tool, ir, target, function, options, timeout):
    try:
        with tempfile.TemporaryDirectory(prefix="gdn-") as folder:
            source = Path(folder) / "input.mlir"
            source.write_text(ir)
            output = Path(folder) / "out"
            output.mkdir()
            command = [tool, str(source), f"--target={target}", "--to=ptx", "-o", str(output), *options]
            _call(command, timeout)
            return _collect(output, function)
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
