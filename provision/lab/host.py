"""One lab host: what is known of it, and where its parts are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..transport.target import Target
from . import cgroups, kinds

if TYPE_CHECKING:
    from pathlib import Path

    from .place import Place


@dataclass(frozen=True)
class LabHost:
    """A host of the lab. `number`, the last one of its address, makes its names on the machine unique."""

    place: Place
    name: str
    release: str
    gpus: str
    number: int
    address: str
    base: str

    @property
    def kind(self) -> str:
        """`container`, or `vm` for a virtual machine."""
        note = self.folder / "kind"
        return note.read_text().strip() if note.exists() else kinds.DEFAULT

    @property
    def folder(self) -> Path:
        return self.place.hosts / self.name

    @property
    def root(self) -> Path:
        """The host's file system as seen from this machine: a container's at all times, a virtual
        machine's only until its first boot.
        """
        return self.folder / "root"

    @property
    def layer(self) -> Path:
        """What the host has changed over its base root (an overlay's upper folder)."""
        return self.folder / "upper"

    @property
    def double(self) -> Path:
        """Folder of the GPU double on this machine."""
        return self.folder / "double"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def password(self) -> str:
        """The root password that the host was made with."""
        return (self.folder / "password").read_text().strip()

    @property
    def machine(self) -> str:
        return f"{self.place.bridge}-{self.number}"

    @property
    def link(self) -> str:
        return f"vb-{self.machine}"

    @property
    def cgroup(self) -> str:
        return f"gpu-provision-{self.machine}"

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def whole(self) -> bool:
        """Whether the host was made to the end; what was cut short is only there to be removed."""
        return (self.folder / "whole").exists()

    @property
    def state(self) -> str:
        if not self.whole:
            return "half-made"
        return "running" if cgroups.members(self.cgroup) else "off"

    def target(self) -> Target:
        """How OpenSSH reaches the host: root, by the lab's key, its host key checked strictly."""
        return Target(
            name=self.name,
            address=self.address,
            user="root",
            identity=str(self.place.key),
            options=(
                f"UserKnownHostsFile={self.place.known_hosts}",
                "GlobalKnownHostsFile=/dev/null",
                "StrictHostKeyChecking=yes",
                "IdentitiesOnly=yes",
                "IdentityAgent=none",
            ),
        )

    def save(self, kind: str = kinds.DEFAULT) -> None:
        """Writes down what is known of a new host."""
        (self.folder / "kind").write_text(f"{kind}\n")
        record = {key: value for key, value in asdict(self).items() if key != "place"}
        half = self.folder / ".host.json"
        half.write_text(json.dumps(record, indent=1) + "\n")
        half.replace(self.folder / "host.json")


def load(place: Place, name: str) -> LabHost | None:
    """The host of this name, half-made ones too; None where there is none, or for a user who may not look."""
    try:
        record = json.loads((place.hosts / name / "host.json").read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return LabHost(place=place, **record)


def all_hosts(place: Place) -> list[LabHost]:
    """Every host that has a record, in order of name; half-made ones too."""
    names = sorted(path.name for path in place.hosts.glob("*") if path.is_dir())
    return [host for name in names if (host := load(place, name))]
