"""The whole command from this tree, on lab hosts that take NVIDIA's packages from the tests' own archive."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plays import Controller

if TYPE_CHECKING:
    from archive.served import Archive

    from provision.lab import LabHost

SECONDS = 900
_DRIVERS = re.compile(r"nvidia|^libcuda1$|cuda-drivers|libnvsdm|nvlsm")


@dataclass(frozen=True)
class Ended:
    """How one call of the command ended, for its one host."""

    status: int
    host: dict[str, Any]
    told: str

    @property
    def planned(self) -> list[str]:
        return list(self.host.get("planned", ()))

    def bad(self) -> list[tuple[str, str, str]]:
        """Findings that fail or are not known, of the last look."""
        found = self.host["judgement"]["findings"]
        return [(f["control"], f["status"], f["actual"]) for f in found if f["status"] in ("fail", "unknown")]


class Whole:
    """One lab host and the settings that every call for it has."""

    def __init__(self, folder: Path, host: LabHost, archive: Archive, *settings: str) -> None:
        key = folder / "archive.asc"
        key.write_text(archive.key)
        self.host, self.folder = host, folder
        self.control = Controller(folder / "control", host)
        self.shell = self.control.shell
        self.settings = (
            f"nvidia_driver_repository={archive.cuda}", f"nvidia_driver_repository_key=@{key}", *settings,
        )  # fmt: skip

    def __call__(
        self, command: str, *settings: str, words: tuple[str, ...] = (), timeout: float = SECONDS
    ) -> Ended:
        """Run `gpu-provision COMMAND` for the host with `--set` for each setting, and read its report."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        given = [word for setting in (*self.settings, *settings) for word in ("--set", setting)]
        done = subprocess.run(
            [Path(sys.executable).with_name("gpu-provision"), command, self.host.name, *given,
             "--format", "json", *words],
            env={**kept, "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )  # fmt: skip
        report = json.loads(done.stdout) if done.stdout else {"hosts": [{}]}
        return Ended(done.returncode, report["hosts"][0], done.stdout + done.stderr)

    def bootstrap(self, *settings: str, words: tuple[str, ...] = ()) -> Ended:
        return self("bootstrap", *settings, words=("--yes", *words))

    def moved(self, *settings: str, words: tuple[str, ...] = ()) -> Ended:
        """Bootstrap to another driver, through the reboot that loads it."""
        return self.bootstrap(*settings, words=(*words, "--reboot", "allow"))

    def installed(self) -> dict[str, str]:
        """Versions of the driver's packages and of the fabric's, by name."""
        listed = self.shell("dpkg-query -W -f='${db:Status-Abbrev}\\t${Package}\\t${Version}\\n'")
        rows = [line.split("\t") for line in listed.splitlines()]
        found = {name: version for status, name, version in rows if status[1] == "i"}
        return {name: version for name, version in found.items() if _DRIVERS.search(name)}

    def held(self) -> set[str]:
        return set(self.shell("apt-mark showhold").split())

    def kernels(self) -> list[str]:
        return self.shell("ls /lib/modules").split()

    def modules(self) -> set[str]:
        """Versions of the NVIDIA module over all kernels."""
        return {self.shell(f"modinfo -k {k} -F version nvidia").strip() for k in self.kernels()}

    def loaded(self) -> str:
        return self.shell("cat /sys/module/nvidia/version 2>/dev/null || true").strip()
