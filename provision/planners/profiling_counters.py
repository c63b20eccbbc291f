"""Counters of processors and GPUs for users that are not root: only where the profile asks, and at a price.

Both are closed by default, since what one user's job leaves in them tells of another's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .wanted import File, Wanted, Why

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile

GPU, CPU = "profiling_tools_gpu_counters", "profiling_tools_perf_event_paranoid"
MODPROBE = "/etc/modprobe.d/gpu-provision-profiling.conf"
SYSCTL = "/etc/sysctl.d/91-gpu-provision-profiling.conf"
NAME = "kernel.perf_event_paranoid"
_OPTION = "NVreg_RestrictProfilingToAdminUsers"
_HEAD = "# Written by gpu-provision (role profiling_tools)"
GPU_PRICE = (
    "every user reads counters of the whole GPU, and may guess what others compute there (CVE-2018-6260)"
)
CPU_PRICE = "every user measures own processes, and at 0 and below the kernel and all processes as well"
_GPU_SOURCE = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
_CPU_SOURCE = "https://docs.kernel.org/admin-guide/perf-security.html"


def wanted(facts: Facts, profile: Profile) -> Wanted:
    """A file for modprobe, which counts from the module's next loading, and one for sysctl."""
    gpu, cpu = bool(profile[GPU]), profile[CPU]
    virtualization = facts.virtualization
    if not isinstance(virtualization, Unknown) and virtualization.shares_kernel:
        says = f"left alone: the kernel is another machine's ({virtualization.kind})"
        asked = [name for name, value in ((GPU, gpu or None), (CPU, cpu)) if value is not None]
        return Wanted(files=_gone(facts, MODPROBE, SYSCTL), why=tuple(Why(name, says) for name in asked))
    if gpu and (path := _closed_by(facts)) is not None:
        return Wanted(
            refused=f"{GPU}: {path} sets {_OPTION} as well, and the last file counts; take it out there"
        )
    files: tuple[File, ...] = ()
    why: list[Why] = []
    if gpu:
        files += (File(MODPROBE, f"{_HEAD}: {GPU_PRICE}.\noptions nvidia {_OPTION}=0\n"),)
        why.append(Why(_OPTION, f"asked for; the price: {GPU_PRICE}", _GPU_SOURCE))
    if cpu is not None:
        files += (File(SYSCTL, f"{_HEAD}: {CPU_PRICE}.\n{NAME} = {cpu}\n"),)
        why.append(Why(NAME, f"asked for; the price: {CPU_PRICE}", _CPU_SOURCE))
    files += _gone(facts, *(path for path in (MODPROBE, SYSCTL) if path not in {file.path for file in files}))
    now = paranoid(facts)
    steps = (f"set {NAME} to {cpu} (now {now or '?'})",) if cpu is not None and now != str(cpu) else ()
    return Wanted(
        files=files,
        reload=("systemctl restart systemd-sysctl.service",) if cpu is not None else (),
        steps=steps,
        why=tuple(why),
    )


def paranoid(facts: Facts) -> str | None:
    """The kernel's value now."""
    return None if isinstance(facts.sysctl, Unknown) else facts.sysctl.get(NAME)


def restricted(facts: Facts) -> bool | Unknown:
    """Whether the loaded module keeps counters for root; unknown where none is loaded or it does not tell."""
    text = facts.file("/proc/driver/nvidia/params")
    found = (
        re.search(r"^RmProfilingAdminOnly:\s*(\d+)", text, re.MULTILINE) if isinstance(text, str) else None
    )
    if found is None:
        return text if isinstance(text, Unknown) else Unknown("no nvidia module tells of its parameters")
    return found[1] != "0"


def _gone(facts: Facts, *paths: str) -> tuple[File, ...]:
    """Files of ours that go, named only where they are."""
    return tuple(File(path, None) for path in paths if isinstance(facts.file(path), str))


def _closed_by(facts: Facts) -> str | None:
    """A file of somebody else's that closes the counters again."""
    files = facts.files("/etc/modprobe.d/*")
    for path, text in () if isinstance(files, Unknown) else files.items():
        if (
            path != MODPROBE
            and isinstance(text, str)
            and re.search(rf"^\s*options.*{_OPTION}=1", text, re.MULTILINE)
        ):
            return path
    return None
