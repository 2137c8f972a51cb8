#!/usr/bin/env bash
# portable.sh [CMAKE OPTION...]: a .deb and a tarball that need nothing but the C and C++ run-time libraries of Debian 12,
# Ubuntu 24.04 or newer. Runs on Debian 12. SimGrid is built from Debian's source without ns-3 and MPI emulation (ns-3 is
# GPL and cannot come along); RACKCAST_SIMGRID names a folder where that was done before.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
cd "$root"
build="${RACKCAST_BUILD_DIR:-build/portable}"
work="$PWD/build/portable-simgrid"
simgrid="${RACKCAST_SIMGRID:-$work/installed}"
mkdir -p "$work"

if [ ! -e "$simgrid/lib/libsimgrid.so" ]; then
  mkdir -p "$work/sources" "$work/lists/partial"
  cp /etc/apt/sources.list.d/debian.sources "$work/sources/" && sed -i 's/^Types: deb$/Types: deb-src/' "$work/sources/debian.sources"
  apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::State::lists=$work/lists")
  "${apt[@]}" update
  (cd "$work" && "${apt[@]}" source --download-only simgrid && tar xf simgrid_*.orig.tar.* && tar xf simgrid_*.debian.tar.* debian/copyright)
  cmake -S "$(echo "$work"/simgrid-*/)" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_DISABLE_FIND_PACKAGE_Boost_context=ON \
    -Denable_smpi=OFF -Denable_ns3=OFF -Denable_python=OFF -Denable_java=OFF -Denable_msg=OFF -Denable_fortran=OFF -Denable_lto=OFF
  cmake --build "$work/build" --target simgrid graphicator  # its install takes the tool along
  rm -rf "$simgrid.part"
  cmake --install "$work/build" --prefix "$simgrid.part" --strip
  cp "$work/debian/copyright" "$simgrid.part/copyright"
  rm -rf "$simgrid" && mv "$simgrid.part" "$simgrid"  # whole or not at all
fi

licences="$work/licences"
mkdir -p "$licences"
cp "$simgrid/copyright" "$licences/libsimgrid"
for package in libfmt9 libyaml-cpp0.7 libsqlite3-0 zlib1g; do cp "/usr/share/doc/$package/copyright" "$licences/$package"; done

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRACKCAST_TESTS=OFF -DRACKCAST_PORTABLE=ON -DRACKCAST_LICENCES="$licences" \
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DSIMGRID_LIBRARY="$simgrid/lib/libsimgrid.so" -DSIMGRID_INCLUDE_DIR="$simgrid/include" "$@"
cmake --build "$build"
cd "$build"
cpack
