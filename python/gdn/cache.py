# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The disk cache of compiled kernels.

It lies in $GDN_CACHE_DIR, by default ~/.cache/gdn; an empty $GDN_CACHE_DIR turns it off. An entry
is one file that starts with a checksum of the rest. It is written under a temporary name and
renamed, so processes can share the cache, and threads too. Entries together stay below
$GDN_CACHE_BYTES (default 1 GiB): those not used for the longest time go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
import warnings
from pathlib import Path

SUFFIX = ".gdn"
DEFAULT_BYTES = 1 << 30
# A temporary file this old belongs to a process that has ended.
_ABANDONED_SECONDS = 3600


class CacheWarning(UserWarning):
    """The cache could not be used; the compilation went on without it."""


def directory():
    """Folder of the cache, or None where $GDN_CACHE_DIR is set to nothing."""
    named = os.environ.get("GDN_CACHE_DIR")
    if named is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        return Path(base) / "gdn"
    return Path(named) if named else None


def limit():
    """Bytes that all entries together may take."""
    text = os.environ.get("GDN_CACHE_BYTES", "")
    try:
        return int(text) if text else DEFAULT_BYTES
    except ValueError:
        raise ValueError(f"$GDN_CACHE_BYTES is '{text}', which is no number of bytes") from None


def _entries(folder):
    """(time of the last use, size, path) of each entry, the oldest first."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(SUFFIX) or file.name.startswith(".tmp-"):
                with contextlib.suppress(OSError):
                    status = file.stat()
                    found.append((status.st_mtime_ns, status.st_size, file.path))
    return sorted(found)


def size():
    """Bytes in the cache."""
    folder = directory()
    return sum(size for _, size, _ in _entries(folder)) if folder else 0


def clear():
    """Removes all entries. Kernels already loaded go on working."""
    folder = directory()
    for used, _, path in _entries(folder) if folder else ():
        if not _in_writing(used, path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _in_writing(used, path):
    """True for the temporary file of a process that may still be writing it."""
    return os.path.basename(path).startswith(".tmp-") and used > time.time_ns() - _ABANDONED_SECONDS * 10**9


def trim(folder, keep=None):
    """Removes the entries used longest ago until the rest is within the limit; `keep` stays."""
    entries = _entries(folder)
    excess = sum(size for _, size, _ in entries) - limit()
    for used, size, path in entries:
        temporary = os.path.basename(path).startswith(".tmp-")
        if _in_writing(used, path) or not temporary and (excess <= 0 or path == os.fspath(keep or "")):
            continue
        with contextlib.suppress(OSError):
            os.unlink(path)
            excess -= size


def warn(message):
    warnings.warn(message, CacheWarning, stacklevel=5)


def write(path, body):
    """Writes an entry; atomic: the file appears under its name complete or not at all."""
    data = json.dumps(body).encode()
    checksum = hashlib.sha256(data).hexdigest().encode()
    descriptor, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(checksum + b"\n" + data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read(path):
    """The body of an entry, or None where there is none or it is damaged (then with a warning)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        warn(f"cannot read the cache entry {path}: {error.strerror}; compiling again")
        return None
    checksum, _, body = data.partition(b"\n")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        warn(f"the cache entry {path} is corrupt (its checksum does not match); compiling again")
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the time of the last use
    return json.loads(body)


def store(path, body):
    """Writes an entry and keeps the cache within its limit; a failure is only a warning."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, body)
        trim(path.parent, keep=path)
    except OSError as error:
        warn(f"cannot write the cache entry {path}: {error.strerror}; compiling without a cache")
