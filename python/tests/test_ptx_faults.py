# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What test_ptx_sm90 would find: a scan of sm_90a with one statement missing or one descriptor wrong."""

import copy

import numpy as np
import pytest

import ptx_machine
import test_cpu_recurrence as recurrences
import test_ptx
import test_ptx_sm90
from cpu_support import read
from gdn import reference

FORM = dict(T=278, K=64, V=128)
NOTHING = (None, False, ["fence", "nothing"], [])


def without_wait(entry):
    predicate, negated, _, operands = entry
    return predicate, negated, ["mov", "pred"], [operands[0], "-1"]


def is_descriptor(opcode, operands):
    """Whether the statement joins the place of an operand with its layout."""
    return opcode == ["or", "b64"] and operands[2].isdigit() and int(operands[2]) >> 32 > 0


def is_unswizzled(opcode, operands):
    return is_descriptor(opcode, operands) and int(operands[2]) >> 62 == 0


def other_layout(change):
    def changed(entry):
        predicate, negated, opcode, operands = entry
        return predicate, negated, opcode, [*operands[:2], str(change(int(operands[2])))]

    return changed


# By kind: which statements, what they become, and how many of these faults do no harm.
FAULTS = {
    "no wait": (lambda op, _: op[:2] == ["mbarrier", "try_wait"], without_wait, 0),
    # Nobody waits for the last arrivals at the rings of inputs and of outputs.
    "no arrival": (lambda op, _: op[:2] == ["mbarrier", "arrive"], lambda _: NOTHING, 3),
    "no bytes expected": (lambda op, _: op[:2] == ["mbarrier", "expect_tx"], lambda _: NOTHING, 0),
    "no copy": (lambda op, _: op[:4] == ["cp", "async", "bulk", "tensor"], lambda _: NOTHING, 0),
    "no wait for stores": (lambda op, _: op[:4] == ["cp", "async", "bulk", "wait_group"], lambda _: NOTHING, 0),
    "other stride": (is_descriptor, other_layout(lambda bits: bits ^ 3 << 37), 0),
    "other swizzle": (is_descriptor, other_layout(lambda bits: bits ^ 3 << 62), 0),
    "offsets exchanged": (is_unswizzled, other_layout(lambda bits: bits >> 16 | (bits & 0xFFFFFFFF) << 16), 0),
}


def results_of(program, x, want, reverse=False):
    passed, results = recurrences.arguments(FORM, "bf16", x, want)
    test_ptx.execute(program, passed, reverse=reverse)
    return results


@pytest.fixture(scope="module")
def scan():
    """The program, its arguments, and its results: of one that is whole they have all their bits."""
    program = test_ptx_sm90.compiled("split 64", "gated_delta", "bf16", FORM)
    x = recurrences.inputs("gated_delta", FORM, "bf16", seed=1)
    want = recurrences.expected(FORM, "bf16", x)
    results = results_of(program, x, want)
    for result, exact, dtype in zip(results, want, ("bf16", "f32")):
        assert reference.ratio(read(result, dtype), exact) < 1e-2
    return program, x, want, results


def is_found(scan, kernels, monkeypatch):
    """With the last warps ahead or with the first ones."""
    program, x, want, results = scan
    monkeypatch.setattr(ptx_machine, "parse", lambda text: kernels)
    for reverse in (True, False):
        try:
            got = results_of(program, x, want, reverse)
        except ptx_machine.PtxError:
            return True
        if not all(np.array_equal(a, b) for a, b in zip(got, results)):
            return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(scan, fault, monkeypatch):
    where, changed, harmless = FAULTS[fault]
    kernels = ptx_machine.parse(scan[0].ptx)
    (name,) = [name for name in kernels if name.endswith("_scan")]
    whole = kernels[name]
    assert not is_found(scan, kernels, monkeypatch)
    places = [at for at, (_, _, opcode, operands) in enumerate(whole.code) if where(opcode, operands)]
    assert len(places) > (1 if fault == "offsets exchanged" else 3)
    missed = []
    for at in places:
        broken = copy.copy(whole)
        broken.__dict__.pop("kind", None)
        broken.code = [changed(entry) if i == at else entry for i, entry in enumerate(whole.code)]
        if not is_found(scan, {**kernels, name: broken}, monkeypatch):
            missed.append((at, whole.code[at]))
    assert len(missed) <= harmless, missed
