"""The unit that gives GPUs their settings at each boot, and the script that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DAEMON = "nvidia-persistenced.service"
DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d/gpu-provision.conf"
CLOCKS_UNIT = "gpu-provision-clocks.service"
UNIT_FILE = f"/etc/systemd/system/{CLOCKS_UNIT}"
SCRIPT = "/usr/local/lib/gpu-provision/clocks"
OWNED: Mapping[str, tuple[str, ...]] = {DAEMON: (DROP_IN,), CLOCKS_UNIT: (UNIT_FILE, SCRIPT)}

# PartOf: where the daemon stops the driver forgets the clocks, and this unit must not claim to hold them.
UNIT_TEXT = f"""\
# Written by gpu-provision (role gpu_settings).
[Unit]
Description=GPU clocks
After={DAEMON}
Wants={DAEMON}
PartOf={DAEMON}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=10min
ExecStart={SCRIPT} set
ExecStop={SCRIPT} reset

[Install]
WantedBy=multi-user.target
"""

_SCRIPT_HEAD = """\
#!/bin/sh
# Written by gpu-provision (role gpu_settings): `set` or `reset` the clocks of this host's GPUs.
# nvidia-smi ends with 0 where a card does not support a setting, so its words count too.
failed=0
apply() {
    tries=0
    while :; do
        said=$(timeout 60 nvidia-smi "$@" 2>&1)
        status=$?
        case $said in
            *"ot supported"* | *"ot Supported"* | *deprecated*) status=unsupported ;;
        esac
        [ "$status" = 0 ] && return
        tries=$((tries + 1))
        if [ "$status" = unsupported ] || [ "$tries" -ge 10 ]; then
            echo "nvidia-smi $*: $said" >&2
            failed=1
            return
        fi
        sleep 3
    done
}
"""


def script(set_: Iterable[tuple[str, tuple[str, ...]]], reset: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """The script of one host: calls of nvidia-smi, each with the card that it is for."""

    def lines(calls: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
        return [f"    apply -i {card} {' '.join(argv)}" for card, argv in calls]

    return (
        _SCRIPT_HEAD
        + "\n".join(["case ${1:-} in", "set)", *lines(set_), "    ;;", "reset)", *lines(reset), "    ;;"])
        + '\n*)\n    echo "usage: $0 set|reset" >&2\n    exit 2\n    ;;\nesac\nexit "$failed"\n'
    )
