"""The catalog's rows as typed values. Each knows whether it was read in a source and in which."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Row:
    """A row and its provenance: `status` is seen or inferred; `inferred` names fields that were not read."""

    status: str = field(kw_only=True)
    inferred: frozenset[str] = field(kw_only=True, default=frozenset())
    source: tuple[str, ...] = field(kw_only=True)

    def weak(self, *names: str) -> bool:
        """Whether an answer that hangs on these fields hangs on something that no document says."""
        return self.status != "seen" or any(name in self.inferred for name in names)


@dataclass(frozen=True)
class Toolkit(Row):
    """A CUDA toolkit release. `min` is the driver its release notes ask for, None where none is published."""

    version: str
    label: str
    min: str | None
    bundled: str | None
    preview: bool = False


@dataclass(frozen=True)
class Floor(Row):
    """Minor-version compatibility: drivers from `min` on run toolkits `first` to `last` of the major."""

    major: int
    first: str
    min: str
    last: str | None = None


@dataclass(frozen=True)
class Branch(Row):
    """A driver branch. `eol` is the last month of support (YYYY-MM); `ended` an end without a month."""

    branch: int
    type: str
    first: str
    newest: str | None
    max_cuda: str
    modules: tuple[str, ...]
    aarch64: bool
    eol: str | None = None
    ended: bool = False
    first_date: str | None = None
    newest_date: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Architecture(Row):
    """A GPU architecture: first and last driver branch and the kernel modules it runs with."""

    name: str
    smi: str | None
    first: int
    last: int | None
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Capability(Row):
    """A compute capability and the CUDA toolkits that build for it."""

    cc: str
    first_cuda: str
    last_cuda: str | None
    note: str = ""


@dataclass(frozen=True)
class Gpu(Row):
    """One product: what its PCI device id, chip and architecture say together.

    `first` holds driver releases, one for each branch that learnt of it late; the lowest is the first
    of all. `last` is a branch or None, `segment` D (data center), W (workstation) or C (consumer).
    """

    device: str
    name: str
    chip: str
    architecture: str
    cc: str | None
    first: tuple[str, ...]
    last: int | None
    modules: tuple[str, ...]
    segment: str

    @property
    def id(self) -> str:
        """`vendor:device`, the way that lspci writes it."""
        return f"10de:{self.device}"


@dataclass(frozen=True)
class Distribution(Row):
    """An operating system: what NVIDIA's repository for it holds, its Python, its package manager."""

    os: str
    name: str
    repo: str | None
    arches: tuple[str, ...]
    branch_first: int
    branch_last: int | None
    cuda_first: str
    cuda_last: str | None
    python: str
    packages: str
    family: str
    supported: str


@dataclass(frozen=True)
class DriverPackages(Row):
    """Names of one driver's packages (see packages.yml).

    `unbuilt` says why the modules do not compile for the kernels of the same archive; empty where they do.
    """

    origin: str
    family: tuple[str, ...]
    first: int
    last: int | None
    modules: str
    main: str
    lockstep: tuple[str, ...]
    beside: tuple[str, ...]
    pin_by: str
    pin: tuple[str, ...]
    os: tuple[str, ...] = ()
    manager: str | None = None
    unbuilt: str = ""

    def filled(self, branch: int) -> DriverPackages:
        """The same with the branch's number in its names."""

        def named(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(n.format(branch=branch) for n in names)

        return replace(
            self,
            main=self.main.format(branch=branch),
            lockstep=named(self.lockstep),
            beside=named(self.beside),
            pin=named(self.pin),
        )


@dataclass(frozen=True)
class Archive(Row):
    """The driver branches in a distribution's own archive, and those that it still mends."""

    origin: str
    os: str
    branches: tuple[int, ...]
    maintained: tuple[int, ...]
    arches: tuple[str, ...]


@dataclass(frozen=True)
class CudnnRange(Row):
    """cuDNN releases that serve the same CUDA majors and capabilities."""

    first: str
    last: str | None
    cuda: tuple[int, ...]
    cc_first: str
    cc_last: str | None
    driver: Mapping[int, str]
    cuda11_first: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Preference:
    """One line of the documented order."""

    key: str
    says: str


def row_of(kind: type[Any], raw: Mapping[str, Any]) -> Any:
    """A typed row from YAML. Raises TypeError where a field is missing or unknown."""
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    if "from" in values:
        values["origin"] = values.pop("source")
        values["source"] = values.pop("from")
    values["inferred"] = frozenset(values.get("inferred", ()))
    return kind(**values)
