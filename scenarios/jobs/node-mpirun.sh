#!/bin/bash
# Calibrates one node of 8 GPUs with mpirun, one process a GPU: bash node-mpirun.sh [OUT.jsonl]
# Needs the driver and NCCL 2.28 or later (--library-path names its folder when it is not found by itself).
# Without MPI: rackcast-calib run --gpus 8 does the same with eight threads of one process.
set -euo pipefail
program="${RACKCAST_CALIB:-./rackcast-calib}"
gpus="${RACKCAST_GPUS:-8}"
out="${1:-$PWD/node-$(hostname)-${gpus}gpu.jsonl}"

mpirun -n "$gpus" --bind-to none \
  "$program" run --quick --family all_to_all --family collectives --family kv_push --family expert_move \
  --limit 300 --rendezvous "file://$out.rendezvous" --out "$out"
echo "measured: $out"
