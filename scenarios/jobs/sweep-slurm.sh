#!/bin/bash
# A sweep over the cores of several CPU nodes under Slurm. Submit with: sbatch sweep-slurm.sh SWEEP.yaml RESULTS.sqlite
# Needs rackcast built where OpenMPI is, on a file system that all nodes see; no GPU. One process a node; each runs as many
# scenarios at once as its job's cores. Rank 0 hands out the work and alone writes the store, so put it on node-local or
# fast shared disk. A node that dies ends the job; submit it again and what is missing runs.
#SBATCH --job-name=rackcast-sweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail
sweep="${1:?usage: sbatch sweep-slurm.sh SWEEP.yaml RESULTS.sqlite}"
store="${2:?usage: sbatch sweep-slurm.sh SWEEP.yaml RESULTS.sqlite}"
program="${RACKCAST:-rackcast}"

# PMIx is what Debian's and most sites' OpenMPI speak; a site with pmi2 only: RACKCAST_SRUN_MPI=pmi2.
srun --mpi="${RACKCAST_SRUN_MPI:-pmix}" --cpu-bind=none --kill-on-bad-exit=1 \
  "$program" sweep "$sweep" --out "$store" --jobs "${SLURM_CPUS_PER_TASK:-1}"

# One process for the page; the store is complete when srun has ended.
"$program" report "$store" --out "${store%.sqlite}.html"
