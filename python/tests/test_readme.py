# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that README.md shows with their output run, and print such lines."""

import os
import re
import subprocess

import pytest

from gdn import host
from tool_paths import REPOSITORY, need_tool

# An operation of MLIR, an instruction of PTX, an attribute of ours.
DIALECTS = "gdn|gdn_tile|linalg|scf|nvvm|llvm|math|memref"
WORD = re.compile(rf"#gdn[\w.]*<|\b(?:{DIALECTS})\.[\w.]+|^\s*(?:@\S+ )?[a-z]+(?:\.\w+)+")


def blocks():
    """(command, lines shown) of each block whose first line is a command behind `$ `."""
    text = (REPOSITORY / "README.md").read_text()
    for block in re.findall(r"^```\w*\n\$ (.*?)^```", text, re.M | re.S):
        command, _, shown = block.replace("\\\n", " ").partition("\n")
        yield command, shown.splitlines()


BLOCKS = list(blocks())


def test_there_are_blocks():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command[:40] for command, _ in BLOCKS])
def test_block(command, shown):
    for name in re.findall(r"\bgdn-(?:opt|compile)\b", command):
        need_tool(name)
    folders = [os.environ.get("GDN_BIN_DIR"), str(REPOSITORY / "build" / "bin"), host.LLVM_BIN, os.environ["PATH"]]
    environment = dict(os.environ, PATH=os.pathsep.join(filter(None, folders)))
    shell = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(shell, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    words = {word.strip() for line in shown for word in WORD.findall(line)}
    missing = sorted(word for word in words if word not in done.stdout)
    assert not missing, f"{command} prints none of: {', '.join(missing)}"


def test_each_path_of_the_map_exists():
    text = (REPOSITORY / "README.md").read_text()
    for path in re.findall(r"(?<![\w/-])(?:tools|examples|python|test|lib|include)/[\w./-]*\w", text):
        assert (REPOSITORY / path).exists() or "*" in path, path
    assert (REPOSITORY / "LICENSE").exists()
