#!/usr/bin/env bash
# From a fresh Debian 12 to a prediction for one rack: installs, builds, runs the standard scenario, prints the result.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
cd "$root"
bash scenarios/install-deps.sh
cmake -S . -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release -DRACKCAST_CUDA=OFF -DRACKCAST_TESTS=OFF >&2
cmake --build build/quickstart --target rackcast >&2
exec build/quickstart/bin/rackcast run scenarios/standard.yaml
