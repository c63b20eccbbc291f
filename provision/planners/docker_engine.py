"""Which docker a host has or gets. One that is there is adopted, whoever built it; none is swapped.

(ceph/ceph-ansible pull request 5159: a role that wanted docker.io took docker-ce away.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..yaml_text import read_yaml

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile

UNIT = "docker.service"
SOCKET = "docker.socket"
_DATA = Path(__file__).parent.parent / "catalog" / "data" / "container_names.yml"


@cache
def names() -> dict[str, Any]:
    """The table of package names, paths and repositories."""
    return dict(read_yaml(_DATA.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Engine:
    """`present` is False where docker is still to be installed. `refused` says why there can be none."""

    present: bool = False
    packages: tuple[str, ...] = ()
    refused: str | None = None


def engine(facts: Facts, profile: Profile) -> Engine:
    """The docker to adopt, or the packages that bring one."""
    found = facts.engines
    if isinstance(found, Unknown):
        return Engine(refused=f"the installed packages are not known: {found.reason}")
    ours = [e for e in found if e.name == "docker"]
    if any(e.build == "snap" for e in ours):
        return Engine(
            refused="docker comes from a snap, which the container toolkit does not serve (its settings lie "
            "in /var/snap/docker/current/config/daemon.json). Save its data, run `snap remove docker`, and "
            "this again with container_toolkit_install_docker: true"
        )
    if ours:
        return Engine(present=True, packages=_client(facts) if ours[0].package == "docker.io" else ())
    if not isinstance(facts.docker, Unknown | Absent):
        return Engine(present=True)
    if not profile["container_toolkit_install_docker"]:
        return Engine(
            refused="docker is not installed here; container_toolkit_install_docker: true installs it"
        )
    return _new(facts)


def _new(facts: Facts) -> Engine:
    """docker.com's packages where the host has their repository, the distribution's otherwise."""
    builds = names()["engines"]
    if _offered(facts, builds["docker"][0]):
        return Engine(packages=tuple(builds["docker"]))
    packages = facts.packages
    assert not isinstance(packages, Unknown)
    if packages.get("containerd.io") is not None:
        return Engine(
            refused="containerd.io of docker.com is installed, and the distribution's docker would replace "
            "it. Add docker.com's repository, from which docker-ce is then taken"
        )
    return Engine(packages=(builds["distribution"][0], *_client(facts)))


def _client(facts: Facts) -> tuple[str, ...]:
    """Debian 13 has the client in a package of its own, which docker.io only recommends."""
    client = names()["engines"]["distribution"][1]
    packages = facts.packages
    if isinstance(packages, Unknown) or packages.get("docker-ce-cli") is not None:
        return ()
    return (client,) if packages.get(client) is not None or _offered(facts, client) else ()


def _offered(facts: Facts, name: str) -> bool:
    if isinstance(facts.policy, Unknown) or name not in facts.policy:
        return False
    offer = facts.policy[name]
    return bool(offer.archives(offer.candidate))


def trouble(facts: Facts) -> str | None:
    """Why docker's service must be looked at by a person first."""
    units = facts.units
    if isinstance(units, Absent):
        return "this host has no systemd, which is what runs docker and what keeps its settings over a reboot"
    if isinstance(units, Unknown):
        return f"the state of systemd's units is not known: {units.reason}"
    unit = units.get(UNIT)
    if unit is not None and unit.load == "masked":
        return f"{UNIT} is masked, so that nothing can start it: run `systemctl unmask {UNIT}` there"
    if unit is not None and unit.runs and isinstance(facts.docker, Unknown):
        return f"docker runs and does not answer: {facts.docker.reason}"
    return None
