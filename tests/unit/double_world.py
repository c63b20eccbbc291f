"""A lab host's root as a plain directory, for the tests of the GPU double."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from provision.lab.double import parse_gpus
from provision.lab.double.host import fabric, modules, pci, smi
from provision.lab.double.host.world import World
from provision.lab.double.machine import build

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

KERNEL = "6.1.0-57-amd64"


class Host:
    """A root with a double in it, and what the tests do to it."""

    def __init__(
        self, root: Path, gpus: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        self.root, self._capsys = root, capsys
        self.world = World(root)
        for name in ("run/systemd", "sys/module", "proc/driver", "dev", "usr/bin", "etc/modprobe.d"):
            (root / name).mkdir(parents=True)
        (root / "run/systemd/container").write_text("systemd-nspawn")
        self.world.kept.mkdir(parents=True)
        (self.world.kept / "machine.json").write_text(json.dumps(build(parse_gpus(gpus), seed="test")))
        pci.draw(self.world, set())
        monkeypatch.setattr(modules, "modinfo", self._modinfo)
        monkeypatch.setattr(os, "geteuid", lambda: 0)

    @staticmethod
    def _modinfo(path: Path, field: str) -> str:
        fields: dict[str, str] = json.loads(path.read_text())
        return fields[field]

    def user_space(self, version: str) -> None:
        """Install the driver's libraries, as Debian's alternatives leave them."""
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        real = libraries / f"nvidia/current/libnvidia-ml.so.{version}"
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text("")
        alternative = self.root / "etc/alternatives/nvidia--libnvidia-ml.so.1"
        for link, target in ((alternative, real), (libraries / "libnvidia-ml.so.1", alternative)):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(f"/{target.relative_to(self.root)}")

    def module(self, version: str, *, is_open: bool = True, kernel: str = KERNEL) -> str:
        """Put a built module in place, under the name Debian's dkms gives it -> that name."""
        name = "nvidia-current-open" if is_open else "nvidia-current"
        for part, own in (("", "nvidia"), ("-uvm", "nvidia_uvm")):
            file = self.root / f"lib/modules/{kernel}/updates/dkms/{name}{part}.ko.xz"
            file.parent.mkdir(parents=True, exist_ok=True)
            license = "Dual MIT/GPL" if is_open else "NVIDIA"
            file.write_text(json.dumps({"name": own, "version": version, "license": license}))
        listing = "".join(f"updates/dkms/{name}{part}.ko.xz:\n" for part in ("", "-uvm"))
        (self.root / f"lib/modules/{kernel}/modules.dep").write_text(listing)
        return name

    def driver(self, version: str, *, is_open: bool = True) -> None:
        """User space and a loaded module of one version."""
        self.user_space(version)
        modules.load(self.world, self.module(version, is_open=is_open))

    def fabric_manager(self, version: str) -> None:
        """Install the fabric manager with what NVLink 5 needs, and have its service run."""
        for path, text in {
            fabric.SERVICE: "1\n",
            fabric.SUBNET_MANAGER: "",
            "var/lib/dpkg/status": "Package: nvidia-fabricmanager\nStatus: install ok installed\n"
            f"Architecture: amd64\nVersion: {version}-1\n",
        }.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def smi(self, *args: str) -> tuple[str, int]:
        """Run nvidia-smi -> (standard output, exit code)."""
        self._capsys.readouterr()
        code = smi.main(self.world, list(args))
        return self._capsys.readouterr().out, code

    def log(self) -> str:
        file = self.world.run / "kmsg"
        return file.read_text() if file.exists() else ""
