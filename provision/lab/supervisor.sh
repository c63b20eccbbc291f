#!/bin/sh
# Keeps one lab host running: supervisor.sh "CGROUP.PROCS..." COMMAND...
# systemd-nspawn ends with code 133 when the host rebooted, and is then started again: a new boot, the same disk.
# First of all it moves into the host's cgroups, so that everything of the host can be found and ended there.
set -u
for procs in $1; do
    echo $$ > "$procs" || exit 1
done
shift
while :; do
    "$@"
    code=$?
    [ "$code" -eq 133 ] || exit "$code"
done
