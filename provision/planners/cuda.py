"""Role cuda: toolkits side by side, one of them the default, with cuDNN and NCCL built for it.

Nothing is installed unless the profile asks: containers and Python wheels bring their own libraries, and a
toolkit is needed to compile. A toolkit's package never brings a driver (`cuda-toolkit-X-Y`; `cuda-X-Y` and
`cuda` would). Debian's own toolkit lies in the system's folders, where programs find it without help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..catalog.numbers import is_number, minor
from ..facts.known import Absent, Unknown
from . import apt_sources, cuda_libraries, cuda_toolkits, nvidia_repository
from .cuda_toolkits import AUTO
from .driver_place import names
from .wanted import File, Key, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..catalog.stack import Part, Stack
    from ..facts import Facts
    from ..profile.model import Profile

LINK = "/usr/local/cuda"
LOADER = "/etc/ld.so.conf.d/gpu-provision-cuda.conf"
LOGIN = "/etc/profile.d/gpu-provision-cuda.sh"
SERVICES = "/etc/environment.d/60-gpu-provision-cuda.conf"
_HEAD = "# Written by gpu-provision (role cuda): the default CUDA toolkit.\n"
TEXTS = {
    LOADER: f"{_HEAD}{LINK}/lib64\n",
    LOGIN: f"{_HEAD}export CUDA_HOME={LINK}\n"
    f'case ":$PATH:" in *":{LINK}/bin:"*) ;; *) PATH="{LINK}/bin:$PATH" ;; esac\n',
    SERVICES: f"{_HEAD}CUDA_HOME={LINK}\nPATH={LINK}/bin:$PATH\n",
}


@dataclass(frozen=True)
class CudaWanted(Wanted):
    """`default` is the folder that /usr/local/cuda is to lead to, by choice and not by priority.

    `set_default` is True where it does not, and `priority` what it is registered with. `libraries` are the
    packages of cuDNN and NCCL by variable. `absent` are those that go because they were named. `branch` binds
    what the transaction may bring of a driver. `exact` is False where the archives' offer is not known yet.
    """

    asked: bool = False
    default: str | None = None
    set_default: bool = False
    priority: int = 0
    toolkits: tuple[str, ...] = ()
    libraries: dict[str, tuple[str, ...]] | None = None
    absent: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    branch: int | None = None
    independent: tuple[str, ...] = ()
    exact: bool = True


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> CudaWanted:
    """Sources, packages, holds, files and the default, or why there can be none."""
    versions, named = list(profile["cuda_versions"] or ()), list(profile["cuda_absent"] or ())
    libraries = {name: profile[name] for name in ("cuda_cudnn", "cuda_nccl") if profile[name]}
    said = problem(versions) or problem_absent(named)
    if said is None and libraries and not versions:
        said = f"{', '.join(libraries)}: a library is built for a toolkit, and cuda_versions names none"
    if said:
        return CudaWanted(asked=True, refused=said)
    gone = cuda_toolkits.removed(facts, named, [v for v in versions if v != AUTO]) if named else ()
    if isinstance(gone, str):
        return CudaWanted(asked=True, refused=gone)
    if not versions:
        ours = tuple(File(path, None) for path in TEXTS)
        steps = tuple(f"remove {name}" for name in gone)
        return CudaWanted(files=ours, absent=gone, asked=bool(named), steps=steps)
    if isinstance(stack, Unknown):
        return CudaWanted(asked=True, refused=f"no matching set of versions could be chosen: {stack.reason}")
    if not stack.satisfiable:
        told = "; ".join(f"{c.says} ({c.relax})" if c.relax else c.says for c in stack.conflicts)
        return CudaWanted(asked=True, refused=f"no set of versions satisfies this host and profile: {told}")
    chosen = cuda_toolkits.parts(stack, versions)
    if not chosen:
        return CudaWanted(asked=True, refused="no CUDA toolkit fits this host's driver and cards")
    return _chosen(facts, profile, stack, chosen, gone)


def problem(versions: Sequence[Any]) -> str | None:
    """What is wrong with cuda_versions, whatever the host."""
    if list(versions) == [AUTO]:
        return None
    wrong = [v for v in versions if not isinstance(v, str) or not is_number(v) or v.count(".") not in (1, 2)]
    if wrong:
        return f'cuda_versions: {wrong[0]!r} is no release such as "13.0"; or the one word auto'
    series = [minor(version) for version in versions]
    twice = [v for v in series if series.count(v) > 1]
    return f"cuda_versions: {twice[0]} is there twice, and has one place on the host" if twice else None


def problem_absent(named: Sequence[Any]) -> str | None:
    wrong = [n for n in named if not isinstance(n, str) or not n]
    return f'cuda_absent: {wrong[0]!r} is neither a toolkit such as "12.4" nor a package' if wrong else None


def _chosen(
    facts: Facts, profile: Profile, stack: Stack, chosen: list[tuple[str, Part]], gone: tuple[str, ...]
) -> CudaWanted:
    debian = chosen[0][1].source == "debian"
    found = {} if debian else {v: cuda_toolkits.adopted(facts, v) for v, _ in chosen}
    in_the_way = [text for text in found.values() if isinstance(text, str)]
    libraries = cuda_libraries.asked_for(facts, profile, stack, chosen[0][0])
    if in_the_way or isinstance(libraries, str):
        return CudaWanted(asked=True, refused=in_the_way[0] if in_the_way else str(libraries))
    brought = [(v, part) for v, part in chosen if found.get(v) is None]
    packages = [name for v, part in brought for name in cuda_toolkits.package(facts, v, part)]
    packages += [name for each in libraries.values() for name in each]
    place = _place(facts, profile, stack, debian) if packages else nvidia_repository.Repository()
    refused = place.refused or cuda_libraries.rivals(facts, packages, gone)
    if refused:
        return CudaWanted(asked=True, refused=refused)
    default = None if debian else cuda_toolkits.path_of(chosen[0][0])
    again = default is not None and not _is_default(facts, default)
    return CudaWanted(
        files=(*place.files, *_files(debian)),
        keys=place.keys,
        packages=tuple(packages),
        holds=tuple(name.partition("=")[0] for each in libraries.values() for name in each),
        steps=(
            *place.steps,
            *(f"remove {name}" for name in gone),
            *([f"make {LINK} lead to {default}"] if again else []),
        ),
        why=_why(facts, stack, [v for v, kept in found.items() if kept]),
        asked=True,
        default=default,
        set_default=again,
        priority=int(minor(chosen[0][0]).replace(".", "")),
        toolkits=tuple(minor(v) for v, _ in chosen),
        libraries=libraries,
        absent=gone,
        branch=stack.driver.branch if stack.driver else None,
        independent=names("independent"),
        exact=all(_offered(facts, name) for name in packages),
    )


def _place(facts: Facts, profile: Profile, stack: Stack, debian: bool) -> nvidia_repository.Repository:
    """What makes the packages known to apt: the same that a driver of that source would bring."""
    if debian:
        archive = apt_sources.archive(facts)
        return nvidia_repository.Repository((File(apt_sources.PATH, archive.text),), refused=archive.refused)
    return nvidia_repository.repository(facts, profile, stack.driver)


def _files(debian: bool) -> tuple[File, ...]:
    return tuple(File(path, None if debian else text) for path, text in TEXTS.items())


def _is_default(facts: Facts, path: str) -> bool:
    """Whether the link leads there by choice: by priority alone the next toolkit would take it over."""
    found, group = facts.cuda_toolkits, facts.cuda_alternative
    if isinstance(found, Unknown) or isinstance(group, Unknown | Absent):
        return False
    return not group.automatic and any(t.default and t.path == path for t in found)


def _offered(facts: Facts, entry: str) -> bool:
    """Whether a package is named with its version, or an archive is known to have it, or it is there."""
    name, _, version = entry.partition("=")
    if version or (not isinstance(facts.packages, Unknown) and facts.packages.get(name)):
        return True
    return not isinstance(facts.policy, Unknown) and name in facts.policy


def _why(facts: Facts, stack: Stack, kept: Sequence[str]) -> tuple[Why, ...]:
    ours, conda = ("cuda", "cudnn", "nccl"), facts.cuda_conda
    reasons = [Why(r.about, r.says, r.source) for r in stack.reasons if r.about.startswith(ours)]
    for version in kept:
        says = f"{cuda_toolkits.path_of(version)} was brought by no package and is used as it is"
        reasons.append(Why(f"CUDA {version}", says))
    for found in () if isinstance(conda, Unknown) else conda:
        says = f"in conda's {found.path}, for programs of its own: left alone"
        reasons.append(Why(f"CUDA {found.version}", says))
    return tuple(reasons)
