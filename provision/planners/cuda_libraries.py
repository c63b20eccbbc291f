"""cuDNN and NCCL as packages: all of a library at one version, built for the toolkit's major, known to fit.

apt by itself takes the newest build of all, which may be for another CUDA (`libnccl2` of 12 and 13 differ in
their suffix alone) or too new for the cards (cuDNN 9.11 left those before Turing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog.numbers import above, is_number, major, minor, number, starts
from ..facts.known import Unknown
from ..facts.versions import debian_key, upstream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..catalog.stack import Part, Stack
    from ..facts import Facts
    from ..profile.model import Profile

AUTO = "auto"
_DEBIANS_CUDNN = (
    "Debian's nvidia-cudnn is a script that fetches cuDNN and asks for its licence as it is installed: take "
    "the toolkit from NVIDIA's repository, or cuDNN with the Python wheels that need it"
)


def asked_for(facts: Facts, profile: Profile, stack: Stack, toolkit: str) -> dict[str, tuple[str, ...]] | str:
    """Packages of each library that is asked for, by its variable; a text where there are none that fit."""
    found: dict[str, tuple[str, ...]] = {}
    for variable, part, title in (
        ("cuda_cudnn", stack.cudnn, "cuDNN"),
        ("cuda_nccl", stack.nccl, "NCCL"),
    ):
        asked = profile[variable]
        if not asked:
            continue
        if part is None or not part.packages:
            return f"{variable}: there is no {title} for CUDA {minor(toolkit)} on this distribution"
        if part.source == "debian":
            if variable == "cuda_cudnn":
                return f"cuda_cudnn: {_DEBIANS_CUDNN}"
            found[variable] = part.packages
            continue
        # The packages of cuDNN 9 have the major in their name, all others in their version.
        named = any(name.endswith(f"-cuda-{major(toolkit)}") for name in part.packages)
        suffix = "" if named else f"+cuda{major(toolkit)}."
        packages = pinned(facts, part, None if asked == AUTO else str(asked), suffix)
        if isinstance(packages, str):
            return f"{variable}: {packages}"
        found[variable] = packages
    return found


def rivals(facts: Facts, packages: Sequence[str], gone: Sequence[str]) -> str | None:
    """cuDNN 9 for another major, which the one that is asked for cannot stand beside."""
    installed = facts.packages
    ours = {name.partition("=")[0] for name in packages if name.startswith("libcudnn9-cuda-")}
    if isinstance(installed, Unknown) or not ours:
        return None
    there = [name for name in sorted(installed.installed) if "cudnn" in name]
    left = [n for n in there if n.startswith("libcudnn9-cuda-") and n not in ours and n not in gone]
    if not left:
        return None
    set_ = [name for name in there if name.endswith(f"-cuda-{left[0].rpartition('-')[2]}")]
    return (
        f"{left[0]} is installed and cannot stay beside {min(ours)}; name the set to have it removed: "
        f"cuda_absent: [{', '.join(set_)}]"
    )


def pinned(facts: Facts, part: Part, asked: str | None, suffix: str = "") -> tuple[str, ...] | str:
    """The library's packages as NAME=VERSION; bare names where the archives' offer is not known; a text where
    they have none that fits.

    `asked` is a series (`9`, `9.20`), None for the set's own choice. `suffix` has to be in the version
    (`+cuda13.`). What is installed and fits stays, newer builds in the archive or not.
    """
    offered = _offers(facts, part.packages)
    installed = _installed(facts, part.packages)
    if offered is None and installed is None:
        return part.packages
    series, most = asked or part.version, _most(part)
    # The set names a whole release only where the cards do not let it be a newer one.
    capped = part.version.count(".") > 1

    def fits(version: str, *, bounded: bool = True) -> bool:
        own = upstream(version)
        ours = suffix in version and is_number(own) and starts(own, series)
        return ours and not (bounded and above(own, most))

    if installed is not None and fits(installed, bounded=capped):
        return tuple(f"{name}={installed}" for name in part.packages)
    if offered is None:
        return part.packages
    found = sorted(filter(fits, offered), key=lambda v: (number(upstream(v)), debian_key(v)))
    if found:
        return tuple(f"{name}={found[-1]}" for name in part.packages)
    bound = f", and {most} is the newest known to fit" if most else ""
    there = ", ".join(sorted(offered, key=debian_key)) or "no version of all of them"
    return f"the archives have no {part.packages[0]} {series}{suffix}{bound}; they have {there}"


def _offers(facts: Facts, names: tuple[str, ...]) -> set[str] | None:
    """Versions that an archive has of every package; None where it is not known to have any."""
    if isinstance(facts.policy, Unknown):
        return None
    offers = [facts.policy.get(name) for name in names]
    have = [{v for v in offer.versions if offer.archives(v)} if offer else set() for offer in offers]
    return set.intersection(*have) if any(have) else None


def _installed(facts: Facts, names: tuple[str, ...]) -> str | None:
    """The one version that all are installed at; None where there is none such."""
    if isinstance(facts.packages, Unknown):
        return None
    found = [facts.packages.get(name) for name in names]
    versions = {package.version for package in found if package is not None}
    return versions.pop() if len(versions) == 1 and all(found) else None


def _most(part: Part) -> str | None:
    """The newest release that the set was found to fit with, by its pins."""
    for pin in part.pin:
        own = upstream(pin.partition("=")[2].replace("*", "0"))
        if is_number(own):
            return own
    return None
