# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds up the JUnit reports of all runners in a folder and prints the total.

For each NAME.status (the runner's exit status) the folder should hold NAME.xml.
A runner without a readable report, or one that failed without a failed test,
counts as one failure, so that nothing is green by accident.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def count(report):
    """(passed, failed, skipped, names of the failed tests) of one report."""
    passed, skipped, failures = 0, 0, []
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{case.get('classname')} {case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, len(failures), skipped, failures


def main(folder):
    total = [0, 0, 0]
    statuses = sorted(pathlib.Path(folder).glob("*.status"))
    for path in statuses:
        status = int(path.read_text())
        try:
            *counts, failures = count(path.with_suffix(".xml"))
        except (OSError, xml.ParseError) as error:
            counts, failures = [0, 1, 0], [f"no report: {error}"]
        if sum(counts) == 0 or (status != 0 and counts[1] == 0):
            counts[1] += 1
            failures.append(f"exit status {status}, {sum(counts) - 1} tests")
        for failure in failures:
            print(f"FAILED {path.stem}: {failure}")
        print("{:8} {:5} passed {:5} failed {:5} skipped".format(path.stem, *counts))
        total = [a + b for a, b in zip(total, counts)]
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] or not statuses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
