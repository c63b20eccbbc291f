"""The resolver's question for a real host: from its facts and its profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Usage
from ..facts.known import Unknown
from .demands import Demands
from .gpus import PciId, UnknownGpu
from .numbers import is_number, major
from .offers import Offer, Offers
from .question import canonical_arch, canonical_os
from .resolver import resolve
from .tables import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from ..facts import Facts
    from ..facts.apt import Offer as AptOffer
    from ..facts.apt import Origin
    from ..profile.model import Profile
    from .stack import Stack

# Packages by which a driver shows that it is there, whatever its source; `-` ends the branch or flavour.
_DRIVER = (
    "nvidia-smi",
    "libcuda1",
    "libnvidia-compute",
    "nvidia-utils-",
    "nvidia-driver-cuda",
    "nvidia-kernel-common-",
)
_NVIDIA = ("nvidia.com/", "/cuda/repos/", "file:/var/cuda-repo-", "file:/var/nvidia-driver-local-repo-")


def stack_for(facts: Facts, profile: Profile, today: date) -> Stack | Unknown:
    """The matching set of one host, or Unknown with the reason why it cannot be told.

    Raises Usage where a variable of the profile names something that does not exist.
    """
    os, arch, gpus = facts.os, facts.arch, facts.nvidia_gpus_on_bus
    for fact in (os, arch, gpus):
        if isinstance(fact, Unknown):
            return fact
    assert not isinstance(os, Unknown)
    assert not isinstance(arch, Unknown)
    assert not isinstance(gpus, Unknown)
    if not gpus:
        return Unknown("there is no NVIDIA GPU on the host's bus", "pci")
    try:
        code, machine = canonical_os(os.code, catalog()), canonical_arch(arch)
    except Usage as e:
        return Unknown(e.says, "os-release")
    labels = {"os": os.pretty or os.code, "arch": f"an {machine} machine"}
    demands = demands_of(profile.variables, nvswitch=_nvswitch(facts), labels=labels)
    try:
        return resolve(
            list(dict.fromkeys(PciId(g.vendor, g.device) for g in gpus)),
            os=code,
            arch=machine,
            today=today,
            archive=offers_of(facts, catalog().distributions[code].family),
            demands=demands,
        )
    except UnknownGpu as e:
        return Unknown(e.says, "pci")


def demands_of(
    variables: Mapping[str, Any], *, nvswitch: bool | None = None, labels: Mapping[str, str] | None = None
) -> Demands:
    """The demands that a profile's variables make; `auto`, empty and absent ones make none."""
    branch, version = (_text(variables.get(f"nvidia_driver_{name}")) for name in ("branch", "version"))
    if branch and version and is_number(version) and is_number(branch) and major(version) != major(branch):
        raise Usage(f"nvidia_driver_version: {version} is no release of nvidia_driver_branch: {branch}")
    driver = version or branch
    toolkits = variables.get("cuda_versions")
    cuda = tuple(str(v) for v in toolkits) if isinstance(toolkits, list | tuple) and toolkits else None
    named = {
        "driver": f"nvidia_driver_{'version' if version else 'branch'}: {driver}",
        "cuda": f"cuda_versions: {', '.join(cuda or ())}",
    }
    values = {
        "source": ("nvidia_driver_source", "auto"),
        "modules": ("nvidia_driver_modules", "auto"),
        "cudnn": ("cuda_cudnn", None),
        "nccl": ("cuda_nccl", None),
        "container_toolkit": ("container_toolkit_version", None),
    }
    chosen: dict[str, Any] = {}
    for name, (variable, default) in values.items():
        chosen[name] = _text(variables.get(variable)) or default
        named[name] = f"{variable}: {chosen[name]}"
    return Demands(driver=driver, cuda=cuda, nvswitch=nvswitch, labels={**named, **(labels or {})}, **chosen)


def _text(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    return None if text in {"", "auto"} else text


def _nvswitch(facts: Facts) -> bool | None:
    found = facts.nvswitches
    return None if isinstance(found, Unknown) else bool(found)


def offers_of(facts: Facts, family: str) -> Offers | None:
    """What the host's archives offer, by source; None where that is not known."""
    policy = facts.policy
    installed = _installed_source(facts, family)
    if isinstance(policy, Unknown):
        return Offers({}, installed) if installed else None
    packages = {name: tuple(_versions(offer, family)) for name, offer in policy.items()}
    return Offers({name: offers for name, offers in packages.items() if offers}, installed)


def _versions(offer: AptOffer, family: str) -> list[Offer]:
    found = []
    for version in offer.versions:
        for source in sorted({_source(o, family) for o in offer.archives(version)}):
            found.append(Offer(version, source, candidate=version == offer.candidate))
    return found


def _source(origin: Origin, family: str) -> str:
    return "nvidia" if any(mark in origin.uri for mark in _NVIDIA) else family


def _installed_source(facts: Facts, family: str) -> str | None:
    """Where the present driver came from: by the archive that still has it, else by its packager's mark."""
    packages, policy = facts.packages, facts.policy
    if isinstance(packages, Unknown):
        return None
    for name, package in sorted(packages.installed.items()):
        if not name.startswith(_DRIVER):
            continue
        if packages.manager == "rpm":
            return "nvidia"
        if not isinstance(policy, Unknown) and (offer := policy.get(name)):
            sources = {_source(o, family) for o in offer.archives(package.version)}
            if len(sources) == 1:
                return sources.pop()
        if family == "ubuntu" and "-0ubuntu0." in package.version:
            return "ubuntu"
    return None
