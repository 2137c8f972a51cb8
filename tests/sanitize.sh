#!/usr/bin/env bash
# Address and undefined-behaviour sanitizers over the readers of outside bytes (YAML, CSV, traces, stores, fuzz corpora),
# then clang-tidy over sources that changed in the last commits, where clang-tidy-19 is. The presets asan and tidy take all.
set -euo pipefail
cd "$(dirname "$0")/.."
build="${RACKCAST_ASAN_DIR:-build/asan}"
cmake --preset asan -B "$build" >&2
cmake --build "$build" --target reader_tests >&2
ctest --test-dir "$build" --output-on-failure --no-tests=error -j 2 -L '^(sim/base|sim/trace|fuzz)$'

database="${RACKCAST_BUILD_DIR:-build/tests}"
if ! command -v clang-tidy-19 >/dev/null || [ ! -e "$database/compile_commands.json" ]; then
  echo "clang-tidy: skipped, no clang-tidy-19 or no $database/compile_commands.json" >&2
  exit 0
fi
since="$(git rev-list --max-count=10 HEAD | tail -n 1)" most=16
mapfile -t changed < <(git diff --name-only --diff-filter=d "$since" HEAD -- 'sim/*.cpp' 'calib/*.cpp' 'analysis/*.cpp' 'kernels/*.cpp' ':!calib/gpu' | head -n "$most")
echo "clang-tidy: ${#changed[@]} of the sources changed since ${since:0:7}" >&2
[ "${#changed[@]}" -eq 0 ] || printf '%s\n' "${changed[@]}" | xargs -P 2 -n 1 clang-tidy-19 --quiet --warnings-as-errors='*' --extra-arg=-Wno-deprecated-declarations --extra-arg=-Wno-enum-constexpr-conversion -p "$database"
