"""What the caller asks for, beside the GPUs and the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCES = ("auto", "nvidia", "ubuntu", "debian", "rhel")
MODULES = ("auto", "open", "proprietary")


@dataclass(frozen=True)
class Demands:
    """Demands on the set; None or `auto` leaves the choice to the resolver.

    `driver` is a branch (`580`) or a release (`580.95.05`). `cuda` lists toolkits (`13.0`), the first of
    which is the default one; None takes the best, an empty tuple none. `nvswitch` says whether the host
    has NVSwitches to manage (None: not known), `imex` whether it is a tray whose switches are managed
    outside. `keep` prefers the driver that the host has to a better
    one, as long as it is supported and serves what is asked for: an upgrade is made on purpose.
    `labels` are the words in which a conflict names a demand: `{"cuda": "cuda_versions: [13.0]"}`; without
    one it is named as the command's option.
    """

    driver: str | None = None
    cuda: tuple[str, ...] | None = None
    cudnn: str | None = None
    nccl: str | None = None
    source: str = "auto"
    modules: str = "auto"
    container_toolkit: str | None = None
    nvswitch: bool | None = None
    imex: bool = False
    keep: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, known in (("source", self.source, SOURCES), ("modules", self.modules, MODULES)):
            if value not in known:
                raise Usage(f"{self.label(name)}: not one of {', '.join(known)}")

    def label(self, name: str) -> str:
        """How a conflict names this demand."""
        if name in self.labels:
            return self.labels[name]
        value = getattr(self, name)
        words = ", ".join(value) if isinstance(value, tuple) else str(value)
        return f"--{name.replace('_', '-')} {words}"
