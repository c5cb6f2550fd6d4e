#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Configures build/ once and builds the given targets (default: everything).
# Run tools/setup.sh first. GDN_BUILD_DIR changes the folder, GDN_JOBS the jobs.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# One compile job of the large MLIR headers takes up to 1.5 GB.
jobs() {
  local cores free
  cores=$(nproc)
  free=$(awk '/^MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
  [ "$free" -ge 1 ] || free=1
  echo $((cores < free ? cores : free))
}

start=$(now)
if [ ! -f "$build/build.ninja" ]; then
  say "configuring ${build#"$root"/}"
  # A failed configuration leaves a cache that hides its own cause.
  rm -f "$build/CMakeCache.txt"
  cmake -G Ninja -S "$root" -B "$build" \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-22 \
    -DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld-22 \
    -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld-22
fi
export NINJA_STATUS='[%f/%t, %e s] '
ninja -C "$build" -j "${GDN_JOBS:-$(jobs)}" "$@"
say "built in $(since "$start") s"
