# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's rules that a program can check; run by tools/test.sh.

Each check returns one line per violation. `--report FILE` writes JUnit XML.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".cpp", ".h", ".td", ".py", ".sh", ".cmake", ".mlir")
MAX_LINES = 600
PASS = re.compile(r'^def (\w+)\s*:\s*(?:Interface)?Pass<\s*"([^"]+)"', re.M)
PIPELINE = re.compile(r'PassPipelineRegistration<[^>]*>\(\s*"([^"]+)"')
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(root|home(?!/someone)|work|farm|Users)/\w")


def tracked(*suffixes, under=""):
    """Files git knows or would add, relative to the root."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")
    found = {pathlib.Path(n) for n in names if n and (ROOT / n).is_file()}
    return sorted(
        f for f in found
        if f.as_posix().startswith(under) and (not suffixes or f.suffix in suffixes)
    )


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines()


def find(pattern, files):
    return [
        f"{f}:{n}: {line.strip()}"
        for f in files
        for n, line in enumerate(lines(f), 1)
        if re.search(pattern, line)
    ]


def passes():
    """(definition, argument, text of the definition) of each declared pass."""
    for path in tracked(".td", under="include/"):
        if path.name != "Passes.td":
            continue
        text = (ROOT / path).read_text()
        matches = list(PASS.finditer(text))
        for match, after in zip(matches, matches[1:] + [None]):
            end = after.start() if after else len(text)
            yield match[1], match[2], text[match.start():end]


def check_pass_tests():
    """each pass has a test file of its name"""
    tests = {path.name for path in tracked(".mlir", under="test/")}
    for _, argument, _ in passes():
        # The dialect prefix, gdn- or gdn-tile-, is not part of the file's name.
        names = {argument, argument.removeprefix("gdn-"), argument.removeprefix("gdn-tile-")}
        if not any(name + ".mlir" in tests for name in names):
            yield f"pass {argument} has no test file {argument.removeprefix('gdn-')}.mlir"


def check_pass_pipelines():
    """each pass occurs in a pipeline, or is documented as an oracle or for debugging"""
    text = "\n".join((ROOT / f).read_text() for f in tracked(".cpp", under="lib/Pipelines/"))
    for definition, argument, body in passes():
        used = re.search(rf"\bcreate{definition}\b", text) or f'"{argument}' in text
        if not used and not re.search(r"\boracle\b|\bdebugging\b", body):
            yield f"pass {argument} occurs in no pipeline of lib/Pipelines"


def check_readme():
    """README.md names each pass and pipeline"""
    readme = "\n".join(lines("README.md"))
    names = [argument for _, argument, _ in passes()]
    for path in tracked(".cpp", under="lib/Pipelines/"):
        names += PIPELINE.findall((ROOT / path).read_text())
    for name in names:
        if f"`{name}`" not in readme:
            yield f"README.md does not name {name}"


def check_options():
    """no cl::opt in libraries: tuning is an attribute of the IR"""
    files = tracked(".cpp", ".h", under="lib/") + tracked(".h", under="include/")
    return find(r"\bcl::(opt|list|bits)\b", files)


def check_file_length():
    """no source file is longer than 600 lines"""
    for path in tracked(*SOURCES):
        count = len(lines(path))
        if count > MAX_LINES:
            yield f"{path}: {count} lines, at most {MAX_LINES}"


def check_paths():
    """no path of one particular machine"""
    return find(MACHINE_PATH, tracked(*SOURCES, ".md", ".txt", ".in", ".toml", ".yaml"))


def check_whitespace():
    """no tabs, no trailing white space"""
    return find(r"[ \t]+$|\t", tracked(*SOURCES, ".md", ".txt", ".toml", ".yaml"))


def check_licence():
    """each C++, TableGen, shell and tool source names its licence"""
    for path in tracked(".cpp", ".h", ".td", ".sh"):
        if "SPDX-License-Identifier: Apache-2.0 WITH LLVM-" not in "\n".join(lines(path)[:8]):
            yield f"{path}: no SPDX line"


def run(*command):
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        return (result.stdout + result.stderr).strip().splitlines()
    return []


def check_clang_format():
    """clang-format 22 changes nothing"""
    output = run("clang-format-22", "--dry-run", "-Werror", *map(str, tracked(".cpp", ".h")))
    files = {line.split(":")[0] for line in output if ": error:" in line}
    return [f"clang-format-22 -i {name}" for name in sorted(files)] or output


def check_ruff():
    """ruff finds nothing in the Python sources"""
    return run("ruff", "check", "--no-cache", "-q", "--output-format=concise", ".")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", metavar="FILE", help="write JUnit XML to FILE")
    arguments = parser.parse_args()
    suite, failed = xml.Element("testsuite", name="style"), 0
    for name, check in sorted(globals().items()):
        if not name.startswith("check_"):
            continue
        tool = {"check_clang_format": "clang-format-22", "check_ruff": "ruff"}.get(name)
        case = xml.SubElement(suite, "testcase", classname="style", name=name[6:])
        if tool and not shutil.which(tool):
            print(f"SKIP {check.__doc__}: no {tool}")
            xml.SubElement(case, "skipped", message=f"no {tool}")
            continue
        found = list(check())
        print(f"{'FAIL' if found else 'ok  '} {check.__doc__}")
        for line in found:
            print("     " + line)
        if found:
            failed += 1
            xml.SubElement(case, "failure").text = "\n".join(found)
    if arguments.report:
        xml.ElementTree(suite).write(arguments.report, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
