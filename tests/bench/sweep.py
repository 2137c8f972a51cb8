#!/usr/bin/env python3
"""The sweep's bars on this machine: processor time, speed-up of two jobs over one, memory, equal results.

usage: sweep.py RACKCAST [SWEEP.yaml] [--set KEY=VALUE]...

Runs the sweep (default scenarios/sweep-1000.yaml) with one job, with two, and under mpirun -n 3, each into a store of its
own, and prints what each took. Memory is the proportional set size of all processes of the sweep, sampled ten times a
second. Exit code 1 when results differ. Speed-up is only fair on an idle machine; processor time always is.
"""
import os, re, resource, subprocess, sys, tempfile, time

def processes(root):
    """root and all that descend from it."""
    found, todo = [], [root]
    while todo:
        process = todo.pop()
        found.append(process)
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                todo += map(int, open(f"/proc/{process}/task/{task}/children").read().split())
        except OSError:
            pass
    return found

def pss_bytes(root):
    total = 0
    for process in processes(root):
        try:
            total += 1024 * int(re.search(r"^Pss:\s+(\d+)", open(f"/proc/{process}/smaps_rollup").read(), re.M).group(1))
        except (OSError, AttributeError):
            pass
    return total

def run(command, env):
    before, start, most = resource.getrusage(resource.RUSAGE_CHILDREN), time.time(), 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sweep = subprocess.Popen(command, stdout=out, stderr=err, env=env)
        while sweep.poll() is None:
            most = max(most, pss_bytes(sweep.pid))
            time.sleep(0.1)
        out.seek(0), err.seek(0)
        text, notes = out.read(), err.read().decode()
    if sweep.returncode != 0:
        sys.exit(notes)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return text, notes.strip().splitlines()[0], time.time() - start, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, most

def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rest = sys.argv[2:]
    sweep = rest.pop(0) if rest and not rest[0].startswith("--") else os.path.join(os.path.dirname(__file__), "../../scenarios/sweep-1000.yaml")
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, before, jobs in (("1 job", [], 1), ("2 jobs", [], 2), ("mpirun -n 3", ["mpirun", "-n", "3", "--oversubscribe"], 1)):
            store = os.path.join(folder, f"{len(results)}.sqlite")
            text, note, wall, cpu, pss = run([*before, sys.argv[1], "sweep", sweep, "--out", store, "--jobs", str(jobs), "--json", *rest], env)
            results.append(text)
            print(f"{name:12} {wall:8.1f} s wall {cpu:8.1f} s of processor {pss / 2**30:6.2f} GiB PSS  {note}", flush=True)
    if any(text != results[0] for text in results):
        sys.exit("results differ")
    print("results are identical")

main()
