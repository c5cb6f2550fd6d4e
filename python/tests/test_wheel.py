# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel: built, installed into an empty environment and tried there by tools/test-wheel.sh."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "test-wheel.sh"


@pytest.mark.skipif(
    not (os.environ.get("CI") or os.environ.get("GDN_TEST_WHEEL")), reason="CI and GDN_TEST_WHEEL are not set"
)
def test_wheel():
    done = subprocess.run(["bash", SCRIPT], capture_output=True, text=True, timeout=2400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "the wheel works" in done.stdout
