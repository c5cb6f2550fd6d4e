#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds the wheel, installs it into an empty virtual environment and checks what
# a user gets: size, tag, libraries needed, import time, both programs. Compiles all
# sources again, in four minutes of one core: ccache has no objects of build/ for it,
# since the precompiled header of each folder holds its path. Where this folder was
# built before it takes half a minute. python/tests/test_wheel.py calls it in CI.
# Needs PyPI. The wheel stays in build-wheel/dist.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

dist=$root/build-wheel/dist
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() {
  local what=$1
  shift
  "$@" || die "$what"
  say "$what: yes"
}

rm -rf "$dist"
python3 -m venv "$scratch/venv"
python=$scratch/venv/bin/python
(cd "$root" && "$python" -m pip wheel -q --disable-pip-version-check . --no-deps -w "$dist")
wheel=$(ls "$dist"/gdn_compiler-*-py3-none-*.whl)
say "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
check "smaller than 40 MB" [ "$(stat -c %s "$wheel")" -lt 40000000 ]

"$python" -m pip install -q --disable-pip-version-check "$wheel"
cd "$scratch" # away from the sources
unset PYTHONPATH GDN_COMPILE GDN_OPT
export PATH=$scratch/venv/bin:/usr/bin:/bin
export GDN_CACHE_DIR=$scratch/cache
tools=$("$python" -c 'import gdn.tools; print(gdn.tools.PACKAGED)')
needed=$(readelf -d "$tools" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | xargs)
say "needs $needed"
check "needs libc and libm only" [ "$needed" = "libc.so.6 libm.so.6" ]
seconds=$("$python" -c 'import time; t = time.time(); import gdn; print(time.time() - t)')
say "import gdn: $seconds s"
check "imports in under 0.5 s" awk -v s="$seconds" 'BEGIN { exit !(s < 0.5) }'
check "gdn-opt starts" sh -c 'gdn-opt --help | grep -- --gdn-to-linalg >out'
check "gdn-compile writes PTX" sh -c "gdn-compile '$root/examples/gated_delta_rule.mlir' --to=ptx | grep wgmma >out"
"$python" - <<'PY'
import gdn
ir = gdn.build.recurrence(None, None, 2, 4, 64, 64, gate="head", beta=True)
print("==", gdn.compile.compile(ir, "sm_90a"))

# A function on the CPU, with no LLVM and no torch in reach.
import sys
import numpy as np
from gdn import reference

rng = np.random.default_rng(0)
q, k = (reference.l2norm(rng.standard_normal((1, 70, 2, 32))).astype(np.float32) for _ in range(2))
v = rng.standard_normal((1, 70, 4, 16)).astype(np.float32)
g, beta = -rng.random((1, 70, 4)).astype(np.float32), rng.random((1, 70, 4)).astype(np.float32)
o, state = gdn.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True)
want, _ = reference.recurrence(q, k, v, g, beta)
assert reference.ratio(o, want) < 2e-5, reference.ratio(o, want)
assert "torch" not in sys.modules and gdn.cache.size() > 0
print("== chunk_gated_delta_rule on the CPU: error", reference.ratio(o, want))
PY
say "the wheel works"
