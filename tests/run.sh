#!/usr/bin/env bash
# Installs what is missing, builds and runs every test. CUDA code is compiled wherever nvcc is; GPU tests run only
# where a GPU is. RACKCAST_DATA: folder with traces and published tables; tests that need it say when they skip.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
cd "$root"
bash scenarios/install-deps.sh openmpi-bin libopenmpi-dev valgrind strace
# The browser tests run where node and Chromium are; their packages are small and pinned.
if command -v npm >/dev/null && command -v chromium >/dev/null && [ ! analysis/report/node_modules/.package-lock.json -nt analysis/report/package-lock.json ]; then
  npm ci --ignore-scripts --no-audit --no-fund --prefix analysis/report >&2 || echo "npm ci failed: the browser tests will skip" >&2
fi
build="${RACKCAST_BUILD_DIR:-build/tests}"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRACKCAST_CHECKS=ON -DRACKCAST_WERROR=ON >&2
cmake --build "$build" >&2
ctest --test-dir "$build" --output-on-failure --no-tests=error -j 2 "$@"
