#!/usr/bin/env bash
# Runs the browser tests, one file after the other. Exit 77: skipped, and why is on stderr.
# RACKCAST: the program; MAKE_STORE: tests/support/make_store.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
skip() { echo "skipped: $1" >&2; exit 77; }
command -v node >/dev/null || skip "node is not installed"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 18')" = true ] || skip "node is older than 18"
RACKCAST_CHROMIUM="${RACKCAST_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}"
[ -n "$RACKCAST_CHROMIUM" ] || skip "Chromium is not installed"
[ -d "$here/../../analysis/report/node_modules/playwright-core" ] || skip "analysis/report has no node_modules (run: npm ci --ignore-scripts in it)"
export RACKCAST_CHROMIUM
fast=/dev/shm  # the store of 10,000 rows is written row by row, each safe on its disk
RACKCAST_WEB_FOLDER="$(mktemp -d -p "$([ -w $fast ] && echo $fast || echo "${TMPDIR:-/tmp}")")"
export RACKCAST_WEB_FOLDER
trap 'rm -rf "$RACKCAST_WEB_FOLDER"' EXIT
failed=0
for test in "$here"/*_test.mjs; do
  node "$test" || failed=1
done
exit $failed
