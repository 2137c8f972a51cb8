#!/bin/bash
# Calibrates one NVL72 rack under Slurm: 18 nodes of 4 GPUs, one process a GPU. Submit with: sbatch nvl72-slurm.sh
# Needs: an IMEX domain over the 18 nodes, the driver, NCCL 2.28 or later on every node, and rackcast-calib in a folder
# that all nodes see. Run again to continue: points that are in the file are not taken twice.
#SBATCH --job-name=rackcast-calib
#SBATCH --nodes=18
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=02:00:00
set -euo pipefail
program="${RACKCAST_CALIB:-./rackcast-calib}"
out="${RACKCAST_OUT:-$PWD/nvl72-$SLURM_JOB_ID.jsonl}"

# Ranks meet at the first node. A rank that is lost or hangs ends the step within --limit seconds; finished points stay.
MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-29555}"

srun --ntasks=72 --ntasks-per-node=4 --kill-on-bad-exit=1 \
  "$program" run --quick --family all_to_all --family collectives --family kv_push --family expert_move \
  --limit 300 --out "$out"
echo "measured: $out"
