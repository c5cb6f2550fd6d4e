#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The project's rules that a program can check; see tools/check_style.py.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_environment
exec python3 "$root/tools/check_style.py" "$@"
