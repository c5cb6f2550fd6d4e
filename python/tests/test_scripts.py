# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scripts that count tests and check the project's rules."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(*cases):
    tests = "".join(f"<testcase name='t'>{case}</testcase>" for case in cases)
    return f"<testsuites><testsuite>{tests}</testsuite></testsuites>"


@pytest.mark.parametrize(
    ("runners", "status", "last"),
    [
        ({"lit": (0, report("", "<skipped/>")), "pytest": (0, report("", ""))}, 0, "3 passed, 0 failed, 1 skipped"),
        ({"lit": (1, report("", "<failure/>", "<error/>"))}, 1, "1 passed, 2 failed, 0 skipped"),
        # Failed without a failed test, no tests, no report, a broken report.
        ({"lit": (2, report(""))}, 1, "1 passed, 1 failed, 0 skipped"),
        ({"lit": (0, report())}, 1, "0 passed, 1 failed, 0 skipped"),
        ({"lit": (0, None)}, 1, "0 passed, 1 failed, 0 skipped"),
        ({"lit": (0, "<testsuite>")}, 1, "0 passed, 1 failed, 0 skipped"),
        ({}, 1, "0 passed, 0 failed, 0 skipped"),
    ],
)
def test_count(tmp_path, capsys, runners, status, last):
    for name, (code, text) in runners.items():
        (tmp_path / f"{name}.status").write_text(f"{code}\n")
        if text is not None:
            (tmp_path / f"{name}.xml").write_text(text)
    assert load("count_tests").main(tmp_path) == status
    assert capsys.readouterr().out.splitlines()[-1] == last


PASSES = """
def GdnTileChunksPass : InterfacePass<"gdn-tile-chunks", "mlir::FunctionOpInterface"> {
  let summary = "tile";
}
def ConvertGdnToLoopsPass : Pass<"convert-gdn-to-loops"> {
  let description = [{ The oracle. }];
}
"""


@pytest.fixture
def rules(tmp_path, monkeypatch):
    """check_style on a small repository, and a function that adds a file to it."""
    module = load("check_style")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    def add(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return module, add


def test_each_pass_needs_a_test(rules):
    module, add = rules
    add("include/gdn/Passes.td", PASSES)
    add("test/convert-gdn-to-loops.mlir", "")
    assert list(module.check_pass_tests()) == ["pass gdn-tile-chunks has no test file tile-chunks.mlir"]
    add("test/Dialect/tile-chunks.mlir", "")
    assert list(module.check_pass_tests()) == []


def test_each_pass_occurs_in_a_pipeline(rules):
    module, add = rules
    add("include/gdn/Passes.td", PASSES)
    assert list(module.check_pass_pipelines()) == ["pass gdn-tile-chunks occurs in no pipeline of lib/Pipelines"]
    add("lib/Pipelines/ToLinalg.cpp", "pm.addPass(createGdnTileChunksPass());")
    assert list(module.check_pass_pipelines()) == []


@pytest.mark.parametrize(
    ("check", "name", "good", "bad"),
    [
        ("options", "lib/a.cpp", "int cl;\n", 'llvm::cl::opt<int> x("x");\n'),
        ("file_length", "lib/a.cpp", "\n" * 600, "\n" * 601),
        ("paths", "tools/a.sh", "cd /usr/lib/llvm-22\n", "cd /ho" + "me/me/gdn\n"),
        ("whitespace", "a.md", "a\n", "a \n"),
        ("licence", "lib/a.cpp", "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n", "int x;\n"),
    ],
)
def test_rules_of_the_text(rules, check, name, good, bad):
    module, add = rules
    add(name, good)
    assert list(getattr(module, f"check_{check}")()) == []
    add(name, bad)
    assert len(list(getattr(module, f"check_{check}")())) == 1
