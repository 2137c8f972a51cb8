#!/usr/bin/env bash
# Installs the Debian packages that the build needs, if any is missing. Used by quickstart.sh and tests/run.sh.
set -euo pipefail
packages="g++ cmake ninja-build ccache pkg-config libsimgrid-dev libyaml-cpp-dev libcli11-dev libeigen3-dev \
libboost-dev libboost-test-dev libfmt-dev nlohmann-json3-dev libsqlite3-dev zlib1g-dev ca-certificates"
missing=""
for p in $packages "$@"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q "install ok installed" || missing="$missing $p"
done
if [ -n "$missing" ]; then
  sudo=""
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  echo "installing:$missing" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >&2
fi
