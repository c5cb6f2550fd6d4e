# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Shared by the scripts of this folder; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
llvm_bin=/usr/lib/llvm-22/bin
venv=${GDN_VENV:-$root/.venv}
build=${GDN_BUILD_DIR:-$root/build}

say() { printf '== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The directory of the ptxas to use, or nothing: PATH, CUDA's usual place, the
# virtual environment (where setup.sh puts the one from PyPI).
ptxas_dir() {
  local found
  if found=$(command -v ptxas 2>/dev/null); then
    dirname "$found"
  elif [ -x /usr/local/cuda/bin/ptxas ]; then
    echo /usr/local/cuda/bin
  elif [ -x "$venv/bin/ptxas" ]; then
    echo "$venv/bin"
  fi
}

# Puts the built tools, LLVM's tools, the virtual environment and ptxas on PATH.
use_environment() {
  local ptxas
  ptxas=$(ptxas_dir)
  PATH=$build/bin:$venv/bin:$llvm_bin:$PATH${ptxas:+:$ptxas}
  export PATH
  export PYTHONDONTWRITEBYTECODE=1
}

# Seconds since $1 (a value of `now`), with one decimal.
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
