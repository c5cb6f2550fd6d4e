#!/usr/bin/env bash
# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is missing to build and test gdn on Debian 12 or Ubuntu 24.04:
# LLVM/MLIR 22, clang 22, CMake, Ninja, ccache, zlib and zstd (apt; the archives
# of the latter are for the wheel), a virtual environment with the Python
# packages, and ptxas. Touches nothing that is already there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# file or command : package that brings it
needed=(
  cmake:cmake
  ninja:ninja-build
  ccache:ccache
  git:git
  clang++-22:clang-22
  ld.lld-22:lld-22
  clang-format-22:clang-format-22
  clang-tidy-22:clang-tidy-22
  $llvm_bin/llc:llvm-22
  $llvm_bin/FileCheck:llvm-22-tools
  $llvm_bin/lit:llvm-22-tools
  $llvm_bin/mlir-opt:mlir-22-tools
  $llvm_bin/mlir-runner:mlir-22-tools
  $llvm_bin/mlir-tblgen:mlir-22-tools
  ${llvm_bin%/bin}/lib/cmake/llvm/LLVMConfig.cmake:llvm-22-dev
  ${llvm_bin%/bin}/lib/cmake/mlir/MLIRConfig.cmake:libmlir-22-dev
  /usr/include/zlib.h:zlib1g-dev
  /usr/include/zstd.h:libzstd-dev
)

missing_packages() {
  local entry what package missing=()
  for entry in "${needed[@]}"; do
    what=${entry%%:*} package=${entry##*:}
    case $what in
      /*) [ -e "$what" ] || missing+=("$package") ;;
      *) command -v "$what" >/dev/null || missing+=("$package") ;;
    esac
  done
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  [ ${#missing[@]} -eq 0 ] || printf '%s\n' "${missing[@]}" | sort -u
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing packages needs root, and there is no sudo: run tools/setup.sh as root once"
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 \
    -o Acquire::Retries=3 "$@"
}

has_candidate() {
  # Not grep -q: it would end apt-cache by SIGPIPE, and pipefail reports that.
  LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep 'Candidate: [^(]' >/dev/null
}

# LLVM's own repository, for distributions whose sources lack release 22.
add_llvm_repository() {
  local codename key=/usr/share/keyrings/apt.llvm.org.asc
  local list=/etc/apt/sources.list.d/llvm-22.list
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ -n "$codename" ] || die "cannot tell the release name: no VERSION_CODENAME in /etc/os-release"
  say "the configured apt sources have no LLVM 22: adding https://apt.llvm.org/$codename"
  command -v curl >/dev/null || apt install -y -q --no-install-recommends ca-certificates curl
  as_root curl -fsSL --retry 3 -o "$key" https://apt.llvm.org/llvm-snapshot.gpg.key ||
    die "cannot download the key of https://apt.llvm.org"
  as_root chmod 644 "$key"
  echo "deb [signed-by=$key] https://apt.llvm.org/$codename/ llvm-toolchain-$codename-22 main" |
    as_root tee "$list" >/dev/null
  if ! apt update -q; then
    as_root rm -f "$list"
    die "apt-get update failed with https://apt.llvm.org/$codename, which is removed again"
  fi
}

install_packages() {
  local packages=("$@")
  command -v apt-get >/dev/null || die "missing: ${packages[*]}; this is not a Debian or Ubuntu \
machine, so install them (LLVM and MLIR 22.1 under ${llvm_bin%/bin}) by hand"
  say "installing: ${packages[*]}"
  apt update -q
  local package
  for package in "${packages[@]}"; do
    if [[ $package == *-22* ]] && ! has_candidate "$package"; then
      add_llvm_repository
      break
    fi
  done
  apt install -y -q --no-install-recommends "${packages[@]}"
}

# clang takes the newest GCC directory it finds, even one without C++ headers.
ensure_cxx_headers() {
  local probe='#include <vector>' gcc
  if clang++-22 -x c++ -std=c++17 -fsyntax-only - <<<"$probe" 2>/dev/null; then
    return
  fi
  gcc=$(clang++-22 -v 2>&1 | sed -n 's/^Selected GCC installation:.*\///p')
  [ -n "$gcc" ] || gcc=12
  install_packages "libstdc++-$gcc-dev"
  clang++-22 -x c++ -std=c++17 -fsyntax-only - <<<"$probe" ||
    die "clang++-22 finds no C++ standard library"
}

# Creates .venv and installs the pinned packages; a stamp says what is in it.
ensure_venv() {
  local requirements=$root/python/requirements-test.txt stamp=$venv/gdn.stamp want
  want=$(python3 -V && cat "$requirements")
  if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    return
  fi
  say "installing the Python packages of python/requirements-test.txt into ${venv#"$root"/}"
  python3 -m venv --clear "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements"
  printf '%s' "$want" >"$stamp"
}

ensure_ptxas() {
  [ -z "$(ptxas_dir)" ] || return 0
  say "no ptxas on PATH or in /usr/local/cuda/bin: installing PyPI's nvidia-cuda-nvcc into ${venv#"$root"/}"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
    -r "$root/python/requirements-ptxas.txt"
  local found
  found=$(find "$venv/lib" -path '*/bin/ptxas' -type f | head -n 1)
  [ -n "$found" ] || die "nvidia-cuda-nvcc brought no ptxas"
  chmod +x "$found"
  ln -sf "$found" "$venv/bin/ptxas"
  "$venv/bin/ptxas" --version >/dev/null || die "$venv/bin/ptxas does not run"
}

start=$(now)
mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -gt 0 ]; then
  install_packages "${missing[@]}"
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] || die "still missing after the installation: ${missing[*]}"
fi
ensure_cxx_headers
ensure_venv
ensure_ptxas
say "set-up complete ($(since "$start") s): LLVM $("$llvm_bin/llvm-config" --version), ptxas in $(ptxas_dir)"
