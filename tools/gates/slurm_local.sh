#!/bin/bash
# A Slurm cluster of one-core nodes on this machine, for tests: slurmctld and a slurmd for each node, on loopback, without systemd.
#
#   tools/gates/slurm_local.sh start DIR [NODES]     then: export SLURM_CONF=DIR/slurm.conf; sinfo; sbatch ...
#   tools/gates/slurm_local.sh stop DIR
#
# Needs root and slurmctld slurmd slurm-client munge (Debian). Ports are chosen by the process's number.
#
# SPDX-License-Identifier: MIT
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
action=$1 dir=$2 nodes=${3:-2}
if [ "$action" = stop ]; then
    for file in "$dir"/run/*.pid; do
        [ ! -e "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
    done
    exit 0
fi
mkdir -p "$dir"/{state,spool,log,run}
dir=$(cd "$dir" && pwd)
chmod 0755 "$dir/run"
chmod 0700 "$dir/state"
head -c 1024 /dev/urandom >"$dir/munge.key"
chmod 0400 "$dir/munge.key"
/usr/sbin/munged --key-file="$dir/munge.key" --socket="$dir/run/munge.socket" --pid-file="$dir/run/munged.pid" --seed-file="$dir/run/munge.seed" \
    --log-file="$dir/log/munged.log" --force 2>/dev/null
host=$(hostname -s) user=$(id -un) port=$((20000 + $$ % 20000))
{
    cat <<END
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.socket
SlurmUser=$user
SlurmdUser=$user
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PartitionName=all Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP
END
    for k in $(seq "$nodes"); do
        echo "NodeName=n$k NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + k)) CPUs=1 State=UNKNOWN"
        mkdir -p "$dir/spool/n$k"
    done
} >"$dir/slurm.conf"
export SLURM_CONF=$dir/slurm.conf
/usr/sbin/slurmctld -f "$SLURM_CONF"
for k in $(seq "$nodes"); do /usr/sbin/slurmd -f "$SLURM_CONF" -N "n$k"; done
for _ in $(seq 40); do
    [ "$(timeout 3 sinfo -h -N -t idle 2>/dev/null | wc -l)" != "$nodes" ] || exit 0
    sleep 0.25
done
echo "slurm_local.sh: the nodes did not become idle; see $dir/log" >&2
"$0" stop "$dir"
exit 4
