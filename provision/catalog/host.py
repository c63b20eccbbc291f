"""The resolver's question for a real host: from its facts and its profile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import Usage
from ..facts.known import Unknown
from .demands import Demands
from .fabric import MANAGED_HERE, OUTSIDE, fabric_of
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
# Only NVIDIA's repository has these names.
_OF_NVIDIA = ("cuda-drivers", "nvidia-driver-pinning-", "nvidia-driver-cuda")
_NVIDIA = ("nvidia.com/", "/cuda/repos/", "file:/var/cuda-repo-", "file:/var/nvidia-driver-local-repo-")


def stack_for(facts: Facts, profile: Profile, today: date, *, keep: bool = True) -> Stack | Unknown:
    """The matching set of one host, or Unknown with the reason why it cannot be told.

    With `keep` a driver that the host has is not replaced by a better one while it is supported and serves
    the profile. Raises Usage where a variable of the profile names something that does not exist.
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
    fabric = fabric_of(facts)
    nvswitch = None if isinstance(fabric, Unknown) else fabric in MANAGED_HERE
    demands = replace(
        demands_of(profile.variables, nvswitch=nvswitch, labels=labels), keep=keep, imex=fabric == OUTSIDE
    )
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
    listed = tuple(str(v) for v in toolkits) if isinstance(toolkits, list | tuple) else ()
    cuda = None if listed in ((), ("auto",)) else listed
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


def offers_of(facts: Facts, family: str) -> Offers | None:
    """What the host's archives offer, by source; None where that is not known."""
    policy = facts.policy
    installed = _installed_source(facts, family)
    present = {} if isinstance(facts.packages, Unknown) else facts.packages.installed
    versions = {name: package.version for name, package in present.items()}
    if isinstance(policy, Unknown):
        return Offers({}, installed, versions) if installed else None
    packages = {name: tuple(_versions(offer, family)) for name, offer in policy.items()}
    return Offers({name: offers for name, offers in packages.items() if offers}, installed, versions)


def _versions(offer: AptOffer, family: str) -> list[Offer]:
    found = []
    for version in offer.versions:
        for source in sorted({source_of(o, family) for o in offer.archives(version)}):
            found.append(Offer(version, source, candidate=version == offer.candidate))
    return found


def source_of(origin: Origin, family: str) -> str:
    """NVIDIA's repository by its address, or the archive of the distribution's family."""
    return "nvidia" if any(mark in origin.uri for mark in _NVIDIA) else family


def _installed_source(facts: Facts, family: str) -> str | None:
    """Where the present driver came from; None where there is none or it cannot be told.

    By the archive that still has the installed version, else by the only source that offers the package at
    all, else by what only one packager names or marks so.
    """
    packages, policy = facts.packages, facts.policy
    if isinstance(packages, Unknown):
        return None
    found = [p for name, p in sorted(packages.installed.items()) if name.startswith(_DRIVER)]
    if found and packages.manager == "rpm":
        return "nvidia"
    offers = {} if isinstance(policy, Unknown) else policy
    for package in found:
        offer = offers.get(package.name)
        if offer is None:
            continue
        for versions in ((package.version,), offer.versions):
            sources = {source_of(o, family) for version in versions for o in offer.archives(version)}
            if len(sources) == 1:
                return sources.pop()
    if any(name.startswith(_OF_NVIDIA) for name in packages.installed):
        return "nvidia" if found else None
    own = any("-0ubuntu0." in p.version or p.name.endswith("-server") for p in found)
    return family if found and (own or "nvidia-legacy-check" in packages.installed) else None
