"""Role nccl: /etc/nccl.conf with settings computed from the host's own interfaces and RDMA ports.

Containers and units get the same settings from an environment file, and launchers a map of which cores and
NICs are near each GPU, where the profile asks for them.

What counts when several speak of one variable: what the profile names (nccl_variables, nccl_interface)
before what somebody else wrote into the file, and that before what is computed, as long as it can
work on this host. A foreign setting that cannot work refuses the role; none is replaced in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from ..profile import shapes
from . import bindings_files, nccl_debug, nccl_env, nccl_file, nccl_platform
from .nccl_names import problem, text
from .nccl_network import Chosen, peers, socket_interface, unfit
from .nccl_ports import rdma_ports
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> Wanted:
    """The whole of /etc/nccl.conf. It serves any NCCL, so the stack plays no part."""
    chosen = settings(facts, profile)
    if chosen.refused:
        return Wanted(refused=chosen.refused, why=chosen.why)
    there = facts.file(nccl_file.PATH)
    if isinstance(there, Unknown):
        return Wanted(refused=f"{nccl_file.PATH} cannot be read, so nothing is put over it: {there.reason}")
    kept = () if isinstance(there, Absent) else nccl_file.foreign(there)
    text = nccl_file.render(chosen.values, kept)
    placed, why = bindings_files.files(facts, profile)
    files = (File(nccl_file.PATH, text), *_environment(facts, profile, text), *placed)
    return Wanted(files=files, why=(*chosen.why, *why))


def _environment(facts: Facts, profile: Profile, text: str) -> tuple[File, ...]:
    """The environment file from the very text that NCCL reads, so that both say the same."""
    if profile["nccl_environment"]:
        return (File(nccl_env.PATH, nccl_env.render(nccl_file.effective(text))),)
    return (File(nccl_env.PATH, None),) if isinstance(facts.file(nccl_env.PATH), str) else ()


def settings(facts: Facts, profile: Profile) -> Chosen:
    """NCCL's variables for this host, those left out that a foreign line already settles."""
    named: dict[str, Any] = profile["nccl_variables"] or {}
    problems = [
        said
        for key, value in named.items()
        if (said := problem(key, value) or nccl_debug.for_ever(key, value)) is not None
    ]
    # A play without the command has not been through the check of a profile's values.
    if (said := shapes.nccl_debug(profile["nccl_debug"])) is not None:
        problems.append(f"nccl_debug: {said}.")
    if problems:
        return Chosen({}, refused=" ".join(problems))
    debug, debug_why = nccl_debug.asked(facts, profile)
    asked = {**{key: text(value) for key, value in named.items()}, **debug}
    interface = profile["nccl_interface"]
    foreign = _foreign(facts)
    explicit = set(asked) | ({"NCCL_SOCKET_IFNAME"} if interface != "auto" else set())

    values: dict[str, str] = {}
    why: list[Why] = []
    for part in _computed(facts, profile, asked, foreign):
        if part.refused:
            return part
        values |= part.values
        why += part.why
    for key, value in foreign.items():
        if key in explicit or values.get(key) == value:
            continue
        if (reason := _cannot_work(facts, key, value)) is not None:
            return Chosen({}, refused=_refusal(key, value, reason, values.get(key)))
        if values.pop(key, None) is not None:
            why.append(Why(key, f"{nccl_file.PATH} already sets {value}, which is left as it is"))
    values |= asked
    why += [Why(key, "nccl_variables names it") for key in asked if key not in debug]
    why += debug_why
    replaced = [key for key in values if key in foreign and foreign[key] != values[key]]
    why += [Why(key, f"replaces {foreign[key]} of {nccl_file.PATH}") for key in replaced]
    return Chosen(dict(sorted(values.items())), tuple(why))


def _computed(facts: Facts, profile: Profile, asked: dict[str, str], foreign: dict[str, str]) -> list[Chosen]:
    """What the host itself settles, without what the profile or a working foreign line makes needless."""
    parts, interface = [], profile["nccl_interface"]
    settled = "NCCL_SOCKET_IFNAME" in asked or (
        interface == "auto" and "NCCL_SOCKET_IFNAME" in foreign
        and _cannot_work(facts, "NCCL_SOCKET_IFNAME", foreign["NCCL_SOCKET_IFNAME"]) is None
    )  # fmt: skip
    if not settled:
        parts.append(socket_interface(facts, interface, peers(profile)))
    if not {"NCCL_IB_HCA", "NCCL_IB_DISABLE"} & set(asked):
        parts.append(rdma_ports(facts))
    return [*parts, Chosen(*nccl_platform.settings(facts))]


def _foreign(facts: Facts) -> dict[str, str]:
    there = facts.file(nccl_file.PATH)
    return nccl_file.settings(nccl_file.foreign(there)) if isinstance(there, str) else {}


def _cannot_work(facts: Facts, key: str, value: str) -> str | None:
    """Why a foreign value cannot work on this host; None where it can, or where that cannot be told."""
    if key == "NCCL_SOCKET_IFNAME":
        interfaces = facts.interfaces
        if isinstance(interfaces, Unknown):
            return None
        matched = [i for i in interfaces if matches(value, i.name)]
        if not matched:
            return "this host has no such interface"
        reasons = [f"{i.name} {reason}" for i in matched if (reason := unfit(i)) is not None]
        return ", ".join(reasons) if len(reasons) == len(matched) else None
    ports = facts.rdma
    if isinstance(ports, Unknown):
        return None
    active = [p for p in ports if p.active and not p.switch_management]
    if key == "NCCL_IB_DISABLE" and value.strip() not in ("", "0") and active:
        return "this host has active RDMA ports"
    if key == "NCCL_IB_HCA" and not any(matches(value, p.device, p.port) for p in active):
        return "no active RDMA port of this host matches it"
    return None


def matches(value: str, name: str, port: int | None = None) -> bool:
    """Whether NCCL takes an interface or `device:port` by a filter: `^` excludes, `=` is exact, else prefix.

    (matchIfList in NVIDIA/nccl src/misc/utils.cc)
    """
    exclude = value.startswith("^")
    rest = value.removeprefix("^")
    exact = rest.startswith("=")
    hit = False
    for entry in filter(None, rest.removeprefix("=").split(",")):
        wanted_name, _, wanted_port = entry.partition(":")
        same = name == wanted_name if exact else name.startswith(wanted_name)
        hit = hit or (same and (port is None or wanted_port in ("", str(port))))
    return hit != exclude


def _refusal(key: str, value: str, reason: str, better: str | None) -> str:
    variable = f"nccl_variables: {{{key}: …}}"
    if key == "NCCL_SOCKET_IFNAME" and better:
        variable = f"nccl_interface: {better.removeprefix('=')}"
    computed = f" Computed is {better}." if better else ""
    return (
        f"{nccl_file.PATH} has {key}={value}, which somebody else wrote and which cannot work: {reason}."
        f"{computed} Set `{variable}` to have it replaced, or remove the line."
    )
