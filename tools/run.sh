#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is missing, builds the tools, compiles the Qwen3.5 example to
# PTX, runs it on the CPU and on the GPU where there is one, checks both against
# the definition, and prints a table. Options go to tools/run_example.py.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

start=$(now)
bash "$root/tools/setup.sh"
bash "$root/tools/build.sh" gdn-opt gdn-compile
use_environment
say "examples/qwen3_5_35b_delta_rule.mlir"
python3 "$root/tools/run_example.py" --output "$build/example" "$@"
say "done in $(since "$start") s; PTX and manifest are in ${build#"$root"/}/example"
