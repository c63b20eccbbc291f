"""What puts the old state back by itself: a timer of this boot, and a unit for the next one.

OnActiveSec counts CLOCK_MONOTONIC (systemd.timer(5)), so setting the clock neither fires nor delays it.
AccuracySec has to be given: its default lets a timer come a minute late.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from .revert_script import text
from .state import BOOT_UNIT, fsync_directory, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from .state import Places

BOOT_TEXT = """\
# Written by gpu-provision; gone as soon as nothing waits for its confirmation.
[Unit]
Description=gpu-provision: put back what nobody confirmed before the reboot
DefaultDependencies=no
RequiresMountsFor={state}
After=local-fs.target systemd-remount-fs.service
Before=sysinit.target ssh.service sshd.service ssh.socket sshd.socket
Before=nftables.service ufw.service network-pre.target

[Service]
Type=oneshot
ExecStart=/bin/sh {script} boot

[Install]
WantedBy=multi-user.target
"""


class TimerError(Exception):
    """Nothing would put the old state back by itself, so nothing may change; the message says why."""


def unit(transaction: str) -> str:
    return f"gpu-provision-revert-{transaction}"


def write_units(places: Places) -> None:
    """Write the revert script and the unit that runs it at the next boot. Raises OSError."""
    _put(places.script, text(str(places.units), BOOT_UNIT, str(places.boot_id)), 0o700)
    _put(places.units / BOOT_UNIT, BOOT_TEXT.format(state=places.state, script=places.script), 0o644)
    wants = places.units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    link = wants / BOOT_UNIT
    if not link.is_symlink():
        link.symlink_to(places.units / BOOT_UNIT)
    fsync_directory(wants)


def remove_units(places: Places) -> None:
    (places.units / "multi-user.target.wants" / BOOT_UNIT).unlink(missing_ok=True)
    (places.units / BOOT_UNIT).unlink(missing_ok=True)


def start(places: Places, transaction: str, seconds: int) -> None:
    """Start the timer. Raises TimerError in systemd's own words."""
    done = subprocess.run(
        [
            "systemd-run", "--quiet", "--collect", f"--unit={unit(transaction)}", f"--on-active={seconds}s",
            "--timer-property=AccuracySec=100ms", "--property=Type=oneshot",
            f"--description=gpu-provision: put back what is not confirmed in {seconds} s",
            "/bin/sh", str(places.script), "timer", transaction,
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    if done.returncode != 0:
        raise TimerError(f"systemd-run: {done.stderr.strip() or done.returncode}")


def stop(transaction: str) -> None:
    """Stop a timer; one that has fired or is gone is no error."""
    command = ["systemctl", "stop", f"{unit(transaction)}.timer"]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)


def fire(places: Places, transaction: str) -> None:
    """Put the old state back now, as systemd's child: a dropped line does not stop it half-way."""
    command = ["systemctl", "start", f"{unit(transaction)}.service"]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if places.of("armed", transaction).is_dir():
        # Somebody removed the timer, and its service went with it.
        put_back(places, transaction)


def put_back(places: Places, transaction: str) -> None:
    """Run the revert script here and now. With nothing armed it only tidies up after itself."""
    command = ["/bin/sh", str(places.script), "timer", transaction]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)


def _put(path: Path, content: str, mode: int) -> None:
    """Replace a file whole. One that is already right is left alone."""
    if path.is_file() and path.read_text() == content:
        return
    fresh = path.parent / f".{path.name}.new"
    fresh.unlink(missing_ok=True)
    write_whole(fresh, content.encode(), mode)
    fresh.rename(path)
    fsync_directory(path.parent)
