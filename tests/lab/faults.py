"""Points on a lab host at which a change is stopped or made to fail, and what it is told to be in then."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plays import STATE, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plays import Controller, Play

FOLDER = "var/tmp/fault"
BY_HAND = f"/{STATE}/commit-confirm.sh"

# Stands before the tools that a change calls, in a folder that PATH names first. `hold` and `fail` hold a
# pattern of a call: it waits as long as `hold` is there, after it has told who called; or it fails.
WRAPPER = f"""#!/bin/sh
call="$(basename "$0") $*"
if [ -e /{FOLDER}/hold ] && read -r point </{FOLDER}/hold; then
    case $call in
    $point)
        echo $PPID >/{FOLDER}/reached.new && mv /{FOLDER}/reached.new /{FOLDER}/reached
        while [ -e /{FOLDER}/hold ]; do sleep 0.05; done ;;
    esac
fi
if [ -e /{FOLDER}/fail ] && read -r point </{FOLDER}/fail; then
    case $call in
    $point) echo "made to fail" >&2; exit 1 ;;
    esac
fi
for real in /usr/sbin /usr/bin; do
    [ ! -x "$real/$(basename "$0")" ] || exec "$real/$(basename "$0")" "$@"
done
"""
TOOLS = ("systemd-run", "restorecon", "sshd", "nft", "systemctl")
SET_UP = f"mkdir -p /{FOLDER}; cat >/{FOLDER}/tool; for tool in {' '.join(TOOLS)}; do " + (
    f"install /{FOLDER}/tool /usr/local/sbin/$tool; done"
)

NFT = "/etc/nftables.d/deny.nft"
# nftables.service loads what lies in the folder: a file that stayed would shut everybody out at boot.
NFT_MAIN = 'flush ruleset\ntable ip theirs {\n  chain note {\n  }\n}\ninclude "/etc/nftables.d/*.nft"\n'
NFT_SET_UP = (
    f"mkdir -p /etc/nftables.d; printf '%s' '{NFT_MAIN}' >/etc/nftables.conf; "
    "systemctl enable -q nftables.service; systemctl restart nftables.service"
)


def rules(accept: str) -> str:
    """A table that drops what it does not name; loading it replaces it whole."""
    return (
        "add table inet deny\ndelete table inet deny\ntable inet deny {\n"
        "  chain input {\n    type filter hook input priority 0; policy drop;\n"
        f"    ct state established,related accept\n    {accept}\n  }}\n}}\n"
    )


@dataclass(frozen=True)
class Change:
    """A kind of change: how it is played, which call on the host each step makes, and what it may touch."""

    name: str
    points: dict[str, str]
    folder: str
    signature: str

    def start(self, control: Controller, *, seconds: int, shut: bool = False) -> Play:
        """Play it. `shut`: such that nobody could get in with it, where this kind of change can do that."""
        if self.name == "ssh_hardening":
            variables: dict[str, Any] = {"ssh_hardening_confirm_seconds": seconds}
            return control.start({"role": self.name}, extra=variables)
        arguments = {
            "name": "default deny",
            "seconds": seconds,
            "files": [{"path": NFT, "text": rules(f"tcp dport {2222 if shut else 22} accept")}],
            "loaded": [{"nft": "inet deny"}],
            "validate": [{"command": f"nft -c -f {NFT}"}],
            "load": [f"nft -f {NFT}"],
        }
        return control.start({"gpu_provision.host.commit_confirm": arguments})


# Calls that come once a step, in the order of the steps; confirming stops the timer when all is decided.
COMMON = {
    "arm": "systemd-run *",
    "write": "restorecon *",
    "confirm": "systemctl stop gpu-provision-revert-*.timer",
}
SSH = Change(
    "ssh_hardening",
    {**COMMON, "check": "sshd -t*", "load": "systemctl try-*"},
    "/etc/ssh/sshd_config.d",
    "cd /etc/ssh; find . -exec stat -c '%n %a %U %F' {} + | sort; find . -type f -exec sha256sum {} + | sort",
)
FIREWALL = Change(
    "firewall rules",
    {**COMMON, "check": f"nft -c -f {NFT}", "load": f"nft -f {NFT}"},
    "/etc/nftables.d",
    "nft list ruleset; ls -A /etc/nftables.d; systemctl is-enabled nftables.service",
)


def set_point(control: Controller, kind: str, point: str) -> None:
    """`hold` or `fail` at the next call that fits `point`."""
    folder = control.host.root / FOLDER
    (folder / "reached").unlink(missing_ok=True)
    (folder / kind).write_text(f"{point}\n")


def caller(control: Controller) -> int:
    """The process on the host that made the call which is held."""
    return int((control.host.root / FOLDER / "reached").read_text())


def release(control: Controller) -> None:
    for kind in ("hold", "fail"):
        (control.host.root / FOLDER / kind).unlink(missing_ok=True)


@contextmanager
def cut(control: Controller) -> Iterator[None]:
    """The host's network is gone."""
    subprocess.run(["ip", "link", "set", control.host.link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "set", control.host.link, "up"], check=True)


def told_by(play: Play) -> str:
    """The state that the play's own result names."""
    output, _ = play.process.communicate(timeout=240)
    found: list[str] = re.findall(
        r'"state": "(\w+)"', play.answer.read_text() if play.answer.exists() else output
    )
    assert found, output[-3000:]
    return found[-1]


def told_on_host(control: Controller) -> str:
    """The state that the host names to a person on it."""
    said = control.shell(f"[ ! -e {BY_HAND} ] || sh {BY_HAND} status").split()
    return said[1] if said[1:] and said[1] != "nothing" else "untouched"


@contextmanager
def at(control: Controller, change: Change, step: str) -> Iterator[Callable[[], None]]:
    """A change that is played now stops at `step`; what is given lets it go on, as does the end of this."""
    if step in ("plan", "prove"):
        hold = control.hold if step == "prove" else control.hold_first
        hold.touch()
    else:
        set_point(control, "hold", change.points[step])

    def let_go() -> None:
        control.hold.unlink(missing_ok=True)
        control.hold_first.unlink(missing_ok=True)
        release(control)

    try:
        yield let_go
    finally:
        let_go()


def reached(control: Controller, step: str) -> None:
    """Wait until the change that is played has come to `step`."""
    if step == "plan":
        wait_for(lambda: (control.folder / "asked").exists(), 60, "the first login is tried")
    elif step == "prove":
        wait_for(control.begun, 60, "made effective")
        wait_for(lambda: (control.folder / "asked-again").exists(), 60, "the second login is tried")
    else:
        wait_for(lambda: (control.host.root / FOLDER / "reached").exists(), 60, f"{step} is reached")
