"""Limits of processes: for logins through PAM, for services through systemd's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ..facts.known import Unknown
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile

Limit: TypeAlias = int | str | None
"""Bytes or a number, `unlimited`, or None for what is left alone."""

LOGINS = "/etc/security/limits.d/90-gpu-provision.conf"
SERVICES = "/etc/systemd/system.conf.d/gpu-provision.conf"
SESSIONS = "/etc/systemd/user.conf.d/gpu-provision.conf"
VARIABLES = ("limits_memlock", "limits_nofile", "limits_stack")
HEAD = "# Written by gpu-provision (role limits); change it through the role's variables.\n"
# systemd keeps the soft limit low, as select(2) fails beyond it (systemd's NEWS of version 240).
SOFT_FILES = 1024
_SYS_RESOURCE = 1 << 24  # CAP_SYS_RESOURCE, capabilities(7)
_CONTAINERS = "https://docs.nvidia.com/deeplearning/frameworks/user-guide/index.html#setincshmem"


def wanted(facts: Facts, profile: Profile) -> Wanted:
    """One file for logins and two for systemd's managers; none of them where nothing is named."""
    if (refused := _refusal(facts, profile["limits_nofile"])) is not None:
        return Wanted(refused=refused)
    memlock, files, stack, short = given(facts, profile)
    logins: list[str] = []
    services: list[str] = []
    why: list[Why] = list(short)
    if memlock is not None:
        logins += _lines(("soft", "hard"), "memlock", _kib(memlock))
        services.append(f"DefaultLimitMEMLOCK={_bytes(memlock)}")
        why.append(Why("memlock", "RDMA and pinned host memory lock what they transfer", _CONTAINERS))
    if files is not None:
        logins += _lines(("soft", "hard"), "nofile", str(files))
        services.append(f"DefaultLimitNOFILE={min(SOFT_FILES, int(files))}:{files}")
        says = f"data loaders open many; services raise theirs from {SOFT_FILES} themselves where they can"
        why.append(Why("nofile", says, "https://0pointer.net/blog/file-descriptor-limits.html"))
    if stack is not None:
        logins += _lines(("soft",), "stack", _kib(stack))
        services.append(f"DefaultLimitSTACK={_bytes(stack)}:infinity")
        why.append(Why("stack", "what NVIDIA gives its containers", _CONTAINERS))
    manager = HEAD + "[Manager]\n" + "".join(f"{line}\n" for line in services) if services else None
    text = HEAD + "".join(f"{line}\n" for line in logins) if logins else None
    return Wanted(
        files=(File(LOGINS, text), File(SERVICES, manager), File(SESSIONS, manager)),
        reload=("systemctl daemon-reexec",),
        why=tuple(why),
    )


def given(facts: Facts, profile: Profile) -> tuple[Limit, Limit, Limit, tuple[Why, ...]]:
    """(memlock, nofile, stack) that this host can give of what is named, and why one is less than named."""
    why: list[Why] = []
    found: list[Limit] = []
    for variable in VARIABLES:
        value, name = profile[variable], variable.removeprefix("limits_")
        most = None if value is None else _most(facts, name)
        if most is not None and (value == "unlimited" or int(value) > most):
            says = f"{most}: this host may not raise limits (it lacks CAP_SYS_RESOURCE)"
            why.append(Why(name, says, "setrlimit(2)"))
            value = most
        found.append(value)
    memlock, files, stack = found
    return memlock, files, stack, tuple(why)


def _most(facts: Facts, name: str) -> int | None:
    """The highest hard limit of a host without the right to raise any; None where there is no such bound."""
    rights, limits = facts.rights, facts.limits
    if isinstance(rights, Unknown) or rights.capabilities is None or rights.capabilities & _SYS_RESOURCE:
        return None
    return None if isinstance(limits, Unknown) else limits.session.get(name, (None, None))[1]


def defaults(facts: Facts, profile: Profile) -> dict[str, str]:
    """What systemd's manager says of its defaults once they are in force, by its property's name."""
    memlock, files, stack, _ = given(facts, profile)
    found = {}
    if memlock is not None:
        found["DefaultLimitMEMLOCK"] = _bytes(memlock)
    if files is not None:
        found["DefaultLimitNOFILE"] = str(files)
    if stack is not None:
        found["DefaultLimitSTACKSoft"] = _bytes(stack)
    return found


def _refusal(facts: Facts, files: int | None) -> str | None:
    """PAM fails a login whose limit the kernel refuses, so a number above the kernel's own is not written."""
    if files is None:
        return None
    settings = facts.sysctl
    most = None if isinstance(settings, Unknown) else settings.get("fs.nr_open")
    if most is None or not most.isdecimal():
        return (
            "limits_nofile: the kernel's fs.nr_open is not known, and above it nobody could log in any more."
        )
    if files > int(most):
        return (
            f"limits_nofile is {files}, and the kernel gives a process no more than {most} (fs.nr_open): "
            "every login would fail. Name at most that, or raise fs.nr_open first."
        )
    return None


def _lines(sides: tuple[str, ...], item: str, value: str) -> list[str]:
    """`*` leaves root out (limits.conf(5))."""
    return [f"{who:<4} {side:<4} {item:<7} {value}" for who in ("*", "root") for side in sides]


def _kib(value: int | str) -> str:
    return "unlimited" if value == "unlimited" else str(int(value) // 1024)


def _bytes(value: int | str) -> str:
    return "infinity" if value == "unlimited" else str(int(value) // 1024 * 1024)
