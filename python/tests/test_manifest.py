# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a manifest: what expressions are worth, and which are refused."""

import pytest

from gdn import ManifestError
from gdn.manifest import expression

ARGUMENTS = [{"shape": [None, 5]}, {"shape": [None]}]


@pytest.mark.parametrize(
    ("e", "value"),
    [
        (7, 7),
        (["dim", 0, 0], 130),
        (["dim", 1, 0], 3),
        (["add", ["dim", 0, 1], 2], 7),
        (["sub", 1, ["dim", 0, 0]], -129),
        (["mul", ["dim", 0, 0], ["dim", 1, 0]], 390),
        (["floordiv", ["dim", 0, 0], 64], 2),
        (["ceildiv", ["dim", 0, 0], 64], 3),
        (["ceildiv", 128, 64], 2),
        (["ceildiv", 0, 64], 0),
        (["min", ["dim", 0, 0], 4], 4),
        (["max", ["dim", 0, 0], ["mul", 2**40, 2]], 2**41),
    ],
)
def test_expressions(e, value):
    assert expression(e, ARGUMENTS)([(130, 5), (3,)]) == value


def test_values_are_named_once():
    values = [["add", ["dim", 0, 0], 1], 7, ["mul", ["value", 0], ["value", 0]], ["sub", ["value", 2], ["value", 1]]]
    assert expression(["max", ["value", 3], ["value", 0]], ARGUMENTS, values)([(130, 5), (3,)]) == 131 * 131 - 7
    assert expression(["value", 1], ARGUMENTS, values)([(130, 5), (3,)]) == 7


@pytest.mark.parametrize(
    ("e", "values", "message"),
    [
        (["value", 1], [5], r"\['value', 1\] names no value in front of it; there are 1"),
        (["value", -1], [5], "names no value"),
        (["value", "s"], [5], "names no value"),
        (["value", 1], [5, ["add", ["value", 1], 1]], r"\['value', 1\] names no value in front of it; there are 1"),
    ],
)
def test_bad_values(e, values, message):
    with pytest.raises(ManifestError, match=message):
        expression(e, ARGUMENTS, values)


@pytest.mark.parametrize(
    ("e", "message"),
    [
        (["pow", 2, 3], "unknown operator 'pow'"),
        (["dim", 2, 0], "names no argument; there are 2"),
        (["dim", 1, 1], "names no dimension of an argument of rank 1"),
        (["dim", "__import__('os')", 0], "names no argument"),
        (["add", 1], "is no expression"),
        ("__import__('os')", "is no expression"),
        (True, "is no expression"),
        (1.5, "is no expression"),
    ],
)
def test_bad_expressions(e, message):
    with pytest.raises(ManifestError, match=message):
        expression(e, ARGUMENTS)
