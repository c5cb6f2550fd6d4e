#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is missing, builds, and runs every test: the style checks, lit
# and pytest. GPU tests skip where there is no GPU. The last line counts all
# runners: `N passed, N failed, N skipped`; the exit status is 0 if none failed.
# With CI set, a missing tool that a test needs is an error.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bash "$root/tools/setup.sh"
bash "$root/tools/build.sh"
use_environment

if [ -n "${CI:-}" ]; then
  for tool in ptxas FileCheck mlir-opt mlir-runner lit gdn-opt gdn-compile clang-format-22 ruff; do
    command -v "$tool" >/dev/null || die "$tool is missing, and tests need it"
  done
fi

results=$build/test-results
rm -rf "$results"
mkdir -p "$results"

# A runner that ends badly without one failed test in its report is a failure
# of its own; tools/count_tests.py adds it.
runner() {
  local name=$1 status=0 start
  shift
  start=$(now)
  say "$name"
  "$@" || status=$?
  echo "$status" >"$results/$name.status"
  say "$name: $(since "$start") s"
}

runner style bash "$root/tools/check-style.sh" --report "$results/style.xml"
runner lit "$venv/bin/python" "$llvm_bin/lit" -v -j "$(nproc)" \
  --xunit-xml-output "$results/lit.xml" "$build/test"
if [ -d "$root/python/tests" ]; then
  # By file: what a file's tests share is compiled once.
  runner pytest "$venv/bin/python" -m pytest -p no:cacheprovider \
    -n "$(nproc)" --dist loadfile \
    --rootdir "$root/python" --durations=5 \
    --junit-xml "$results/pytest.xml" "$root/python/tests"
fi
exec "$venv/bin/python" "$root/tools/count_tests.py" "$results"
