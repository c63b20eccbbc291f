"""A virtual machine under test: commands in it, restarts, power cuts. For every test of this tier."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from provision import lab
from provision.lab import vm
from provision.transport.ssh import fresh_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.lab import LabHost

# An emulated machine beside others on two cores boots in minutes, and nothing is proven by giving up early.
PATIENCE = 300.0


class Guest:
    """Commands share a connection that is kept: an emulated processor takes a second for each login."""

    def __init__(self, host: LabHost) -> None:
        self.host = host
        self._master = ["-o", f"ControlPath={host.place.run}/{host.number}.ssh"]

    def try_(self, command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a command and returns what became of it."""
        keep = [*self._master, "-o", "ControlMaster=auto", "-o", "ControlPersist=60"]
        program, *words = fresh_args(self.host.target())
        return _call([program, *keep, *words, command], stdin)

    def run(self, command: str, stdin: str = "") -> str:
        """What a command printed. It has to end with 0."""
        done = self.try_(command, stdin)
        assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def boot_id(self) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id")

    def settle(self) -> None:
        """Waits until the boot has come to its end and udev has named all that is there."""
        self.try_("systemctl is-system-running --wait")
        self.run("udevadm settle --timeout=120")

    def reboot(self) -> None:
        """Has the guest restart itself and waits until it is back."""
        before = self.boot_id()
        self.try_("systemctl reboot")
        self._hang_up()

        def back() -> bool:
            said = _call([*fresh_args(self.host.target()), "cat /proc/sys/kernel/random/boot_id"])
            return said.returncode == 0 and said.stdout.strip() != before

        wait_until(back, "the guest is back")
        self.settle()

    def cut_power(self) -> None:
        """Ends the machine at once; `start` boots it from the disks as they were then."""
        vm.cut_power(self.host)
        self._hang_up()

    def start(self) -> None:
        """Boots a machine that is off and waits until it can be reached."""
        lab.up(self.host.name)
        self.settle()

    def disks(self) -> dict[str, str]:
        """Serial number -> the kernel's name, of every NVMe disk that the guest sees."""
        lines = self.run("lsblk -dnro NAME,SERIAL").splitlines()
        pairs = [line.split() for line in lines if line.startswith("nvme")]
        return {serial: name for name, serial in pairs}

    def _hang_up(self) -> None:
        """Forgets the connection that was kept; what it led to is gone."""
        program, *words = fresh_args(self.host.target())
        _call([program, *self._master, "-O", "exit", *words])


def _call(argv: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, input=stdin, capture_output=True, text=True, check=False, timeout=PATIENCE, errors="replace"
    )


def wait_until(true: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.2)
