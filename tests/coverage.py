#!/usr/bin/env python3
"""Line coverage by folder, after a run of the tests in a build of the preset `coverage`.

  cmake --preset coverage && cmake --build --preset coverage && ctest --preset coverage
  tests/coverage.py build/coverage [LEAST_PERCENT]

Counts a line as covered if any test ran it; lists the files with most lines that none did. Exits with 1 when a folder is
below LEAST_PERCENT. Processes that leave by _exit() or are killed write no counts (sweeps' children, crash tests).
"""
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

FOLDERS = ("sim", "calib", "analysis")
NOT_HOST = "calib/gpu"


def counts_of(gcda):
    run = subprocess.run(["gcov", "--json-format", "--stdout", gcda], capture_output=True, text=True, cwd=os.path.dirname(gcda))
    reports = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or not reports:
        sys.exit(f"{gcda}: gcov cannot read it: {run.stderr.strip()}")
    return reports


def percent(text):
    value = float(text) if text.replace(".", "", 1).isdigit() else -1
    if not 0 <= value <= 100:
        sys.exit(f"LEAST_PERCENT '{text}' must be 0 to 100")
    return value


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if not shutil.which("gcov"):
        sys.exit("gcov is not installed")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.path.abspath(sys.argv[1])
    least = percent(sys.argv[2]) if len(sys.argv) == 3 else 0
    gcda = [os.path.join(d, f) for d, _, files in os.walk(build) for f in files if f.endswith(".gcda")]
    lines = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for reports in pool.map(counts_of, gcda):
            for report in reports:
                for source in report["files"]:
                    path = os.path.normpath(os.path.join(report["current_working_directory"], source["file"]))
                    name = os.path.relpath(path, root)
                    if name.split(os.sep)[0] not in FOLDERS or name.startswith(NOT_HOST):
                        continue
                    for line in source["lines"]:
                        number = line["line_number"]
                        lines[name][number] = max(lines[name].get(number, 0), line["count"])
    if not lines:
        sys.exit(f"{build}: no counts; build the preset coverage and run its tests first")
    failed = False
    for folder in FOLDERS:
        hit = [count > 0 for name, counts in lines.items() if name.split(os.sep)[0] == folder for count in counts.values()]
        share = 100 * sum(hit) / max(1, len(hit))
        failed |= share < least
        print(f"{folder:<9} {sum(hit):>6} of {len(hit):>6} lines, {share:.1f}%")
    print("\nmost lines that no test ran:")
    missed = {name: sum(1 for count in counts.values() if count == 0) for name, counts in lines.items()}
    for name in sorted(missed, key=missed.get, reverse=True)[:15]:
        print(f"  {missed[name]:>4} of {len(lines[name]):>4}  {name}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
