#!/bin/bash
#SBATCH --job-name=ompfuse-combine
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
# Combines units by Spark on the nodes of a Slurm allocation: sbatch slurm.sh UNITS RESULT [OPTION...]
#
# UNITS and RESULT are on a file system that all nodes see, and so are `ompfuse` and the interpreter that OMPFUSE_PYTHON names.
# Only its syntax was checked, by `bash -n`: no cluster was at hand.
set -euo pipefail

units=$1
result=$2
shift 2
export OMPFUSE_PYTHON=${OMPFUSE_PYTHON:-python3}
spark_class=$("$OMPFUSE_PYTHON" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-class"))')
master=$(hostname)
port=${SPARK_MASTER_PORT:-7077}

trap 'kill $(jobs -p) 2>/dev/null' EXIT
"$spark_class" org.apache.spark.deploy.master.Master --host "$master" --port "$port" &
srun "$spark_class" org.apache.spark.deploy.worker.Worker --cores "${SLURM_CPUS_ON_NODE:-1}" "spark://$master:$port" &
ompfuse combine --engine "spark://$master:$port" "$units" -o "$result" "$@"
