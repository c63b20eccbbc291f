"""Toolkits: which packages bring those that are asked for, and what of them is there from elsewhere.

A toolkit of NVIDIA's .run installer is adopted where it is the one that is asked for: its package would write
over the same files. One that conda has is left alone, as only programs of that environment see it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..catalog.numbers import is_number, minor, starts
from ..facts.known import Unknown
from ..facts.versions import debian_key, upstream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..catalog.stack import Part, Stack
    from ..facts import Facts
    from ..facts.cuda import Toolkit
    from ..facts.packages import Packages

AUTO = "auto"
_NUMBER = re.compile(r"\d+\.\d+")


def parts(stack: Stack, asked: Sequence[str]) -> list[tuple[str, Part]]:
    """Each toolkit that is asked for with its part of the set, in the same order."""
    known = [part for part in (stack.cuda, *stack.cuda_others) if part]
    if list(asked) == [AUTO]:
        return [(part.version, part) for part in known[:1]]
    by_minor = {minor(part.version): part for part in known}
    return [(version, by_minor[minor(version)]) for version in asked if minor(version) in by_minor]


def path_of(version: str) -> str:
    """Where NVIDIA's packages and its .run installer both put a toolkit."""
    return f"/usr/local/cuda-{minor(version)}"


def adopted(facts: Facts, version: str) -> Toolkit | str | None:
    """The toolkit that no package brought and that is used as it is; a text where it is in the way."""
    there = unowned(facts).get(path_of(version))
    if there is None or not there.compiler:
        return None  # what a removal left behind is no toolkit
    if there.version is None or not is_number(there.version) or not starts(there.version, version):
        return (
            f"{there.path} holds CUDA {there.version or 'of no known release'}, which no package brought and "
            f"that of {version} would write over: run {there.path}/bin/cuda-uninstaller, or ask for that one"
        )
    return there


def unowned(facts: Facts) -> dict[str, Toolkit]:
    """Toolkits that no package owns, by path; none where that is not known."""
    found, files = facts.cuda_toolkits, facts.driver_files
    if isinstance(found, Unknown) or isinstance(files, Unknown):
        return {}
    owned = {file.path for file in files if file.package is not None}
    return {toolkit.path: toolkit for toolkit in found if toolkit.path not in owned}


def package(facts: Facts, version: str, part: Part) -> tuple[str, ...]:
    """Packages of one toolkit: a series moves with its archive, a whole release is named exactly."""
    if version.count(".") < 2:
        return part.packages
    named = []
    for name in part.packages:
        offer = None if isinstance(facts.policy, Unknown) else facts.policy.get(name)
        same = [v for v in offer.versions if upstream(v) == version] if offer else []
        there = None if isinstance(facts.packages, Unknown) else facts.packages.get(name)
        if there is not None and upstream(there.version) == version:
            same = [there.version]
        named.append(f"{name}={max(same, key=debian_key)}" if same else name)
    return tuple(named)


def removed(facts: Facts, named: Sequence[str], kept: Sequence[str]) -> tuple[str, ...] | str:
    """Installed packages of what is to go: toolkits by number, others by name; a text where one stays.

    `kept` are the toolkits that stay.
    """
    packages = facts.packages
    if isinstance(packages, Unknown):
        return f"the installed packages are not known: {packages.reason}"
    gone: dict[str, None] = {}
    left = {minor(t) for t in (*kept, *_installed(packages))} - {n for n in named if _NUMBER.fullmatch(n)}
    for name in named:
        if not _NUMBER.fullmatch(name):
            gone.update(dict.fromkeys([name] if packages.get(name) else []))
            continue
        if name in {minor(version) for version in kept}:
            return f"cuda_absent names CUDA {name}, and cuda_versions asks for it"
        if path_of(name) in unowned(facts):
            return f"CUDA {name} was brought by no package: run {path_of(name)}/bin/cuda-uninstaller"
        gone.update(dict.fromkeys(_of_toolkit(packages, name, left)))
    return tuple(gone)


def _installed(packages: Packages) -> list[str]:
    found = [re.fullmatch(r"cuda-toolkit-(\d+)-(\d+)", name) for name in packages.installed]
    return [f"{match[1]}.{match[2]}" for match in found if match]


def _of_toolkit(packages: Packages, version: str, left: set[str]) -> list[str]:
    """All packages with a toolkit's number in their name, and those of its major with the last of it."""
    dashed, own = version.replace(".", "-"), version.partition(".")[0]
    pattern = rf"(cuda|lib|nsight|gds)\S*-{dashed}(-config-common)?"
    if not any(other.partition(".")[0] == own for other in left):
        pattern += rf"|cuda-toolkit-{own}-config-common"
    if not left:
        pattern += "|cuda-toolkit-config-common"
    return sorted(name for name in packages.installed if re.fullmatch(pattern, name))
