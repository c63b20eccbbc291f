"""Where a lab keeps its things. One lab is one state directory; the names it uses follow from that."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_STATE = "/var/lib/gpu-provision-lab"
RUN = Path("/run/gpu-provision-lab")


@dataclass(frozen=True)
class Place:
    """The folders and names of one lab. Two labs (two state directories) on a machine never share a name."""

    state: Path

    @property
    def bridge(self) -> str:
        # Short, because the kernel allows 15 characters and nspawn names a host's link vb-BRIDGE-NUMBER.
        return "lab" + hashlib.sha256(str(self.state).encode()).hexdigest()[:4]

    @property
    def run(self) -> Path:
        """What is true only until the machine restarts."""
        return RUN / self.bridge

    @property
    def hosts(self) -> Path:
        return self.state / "hosts"

    @property
    def bases(self) -> Path:
        return self.state / "base"

    @property
    def images(self) -> Path:
        """System disks that virtual machines start from."""
        return self.state / "images"

    @property
    def compiler_cache(self) -> Path:
        return self.state / "ccache"

    @property
    def key(self) -> Path:
        return self.state / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    def packages(self, release: str) -> Path:
        return self.state / "packages" / release


def place() -> Place:
    """The lab in use: GPU_PROVISION_LAB names another state directory than the default."""
    return Place(Path(os.environ.get("GPU_PROVISION_LAB") or DEFAULT_STATE).resolve())
