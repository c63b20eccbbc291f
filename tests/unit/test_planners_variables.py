"""Changing any variable of a role on a converged host puts that role in the plan: a control of it fails.

The recordings are of lab hosts (GPU doubles on Debian 12 and 13) after the three roles ran; names of hosts
that serve packages are replaced.
"""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provision.catalog.host import stack_for
from provision.controls import judge
from provision.controls.model import Status
from provision.facts import Facts
from provision.plan.changes import changes
from provision.planners import (
    apt_sources,
    bindings_files,
    cuda,
    gpu_settings,
    nccl,
    nvidia_repository,
    rival_modules,
    wanted_for,
)
from provision.profile.declared import declared
from provision.profile.model import Profile
from provision.recording.items import FILES
from provision.recording.model import Recording

if TYPE_CHECKING:
    from provision.controls.model import Finding

MIRROR = "http://mirror.example/compute/cuda/repos"
RECORDINGS = Path(__file__).parent.parent / "recordings" / "hosts"
ROLES = ("nvidia_driver", "cuda", "gpu_settings", "nccl")
# Each recording with the variables that its host was made with.
CHOSEN: dict[str, dict[str, Any]] = {
    "debian12-a100-converged": {"nvidia_driver_source": "debian", "gpu_settings_clocks": "max"},
    "debian13-t4-converged": {"nvidia_driver_source": "debian", "gpu_settings_clocks": "base"},
    "debian12-a100-nvidia": {"nvidia_driver_branch": 580, "nvidia_driver_repository": MIRROR},
}
# The third was made by the driver's role alone, from the tests' own archive with a key of its own.
ONLY = {"debian12-a100-nvidia": ("nvidia_driver",)}
TODAY = date(2026, 11, 30)
# The hosts had no toolkit, and the recordings are older than the questions about one.
NOT_ASKED_THEN: dict[str, Any] = {
    "cuda.installed": {"rc": 0, "stdout": "[]", "stderr": ""},
    **{
        f"file:{path}": {"missing": True}
        for path in (*cuda.TEXTS, nccl.nccl_env.PATH, bindings_files.MAP, bindings_files.THREADS)
    },
}
# Another value for each variable, and one more where two kinds of value differ.
CHANGES: dict[str, list[Any]] = {
    "nvidia_driver_source": ["nvidia", "debian"],
    "nvidia_driver_branch": [470, 535, 595],
    "nvidia_driver_repository": ["http://other.example/cuda"],
    "nvidia_driver_repository_key": ["-----BEGIN PGP PUBLIC KEY BLOCK-----"],
    "nvidia_driver_version": ["535.261.03", "550.163.01", "580.95.05"],
    "nvidia_driver_modules": ["open", "proprietary"],
    "cuda_versions": [["auto"], ["13"]],
    "cuda_cudnn": ["9"],
    "cuda_nccl": ["2"],
    "cuda_absent": [["nvidia-smi"], ["12.4", 1]],
    "gpu_settings_persistence": [False],
    "gpu_settings_clocks": ["none", "max", "base", {"graphics": 1200}, {"graphics": 1, "memory": 1}],
    "gpu_settings_power_limit": [100],
    "gpu_settings_compute_mode": ["exclusive_process"],
    "gpu_settings_ecc": [False],
    "gpu_settings_mig": [True],
    "nccl_interface": ["eth9"],
    "nccl_environment": [True],
    "nccl_bindings": [True],
    "nccl_debug": [{"level": "INFO", "until": "2026-12-24"}, {"level": "WARN", "until": "2999-01-01"}],
    "nccl_variables": [{"NCCL_IB_TIMEOUT": 22}, {"NCCL_SOCKET_IFNAME": "=host1"}, {"NCCL_NO_SUCH_THING": 1}],
}


@cache
def recording(name: str) -> Recording:
    then = Recording.from_json((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))
    return replace(then, items={**NOT_ASKED_THEN, **then.items})


@cache
def chosen_of(host: str) -> dict[str, Any]:
    """The variables that a host was made with; the key is as the host has it."""
    own = Facts(recording(host)).file(nvidia_repository.KEYRING)
    return {**CHOSEN[host], **({"nvidia_driver_repository_key": own} if isinstance(own, str) else {})}


def roles_of(host: str) -> tuple[str, ...]:
    return ONLY.get(host, ROLES)


def findings(host: str, **changed: Any) -> tuple[Finding, ...]:
    defaults = {name: variable.default for name, variable in declared().items()}
    chosen = {**chosen_of(host), **changed}
    profile = Profile("test", {**defaults, **chosen}, chosen)
    facts = Facts(recording(host))
    found = judge(facts, profile, stack_for(facts, profile, TODAY))
    return tuple(f for f in found if f.role in roles_of(host))


def changes_of(host: str) -> list[str]:
    """What the plan would say that the roles change."""
    defaults = {name: variable.default for name, variable in declared().items()}
    chosen = chosen_of(host)
    profile, facts = Profile("test", {**defaults, **chosen}, chosen), Facts(recording(host))
    stack = stack_for(facts, profile, TODAY)
    return [
        str(c) for role in roles_of(host) for c in changes(wanted_for(role, facts, profile, stack), facts)
    ]


@pytest.mark.parametrize("host", CHOSEN)
def test_nothing_is_planned_for_a_converged_host(host: str) -> None:
    planned = [f for f in findings(host) if f.status in (Status.FAIL, Status.WARN, Status.UNKNOWN)]
    assert not planned, planned
    assert {f.role for f in findings(host)} == set(roles_of(host))
    assert not changes_of(host)


OURS = [name for name, variable in declared().items() if variable.role in ROLES]
SAME = {
    ("debian12-a100-converged", "nvidia_driver_branch", 535), ("debian12-a100-converged", "gpu_settings_clocks", "max"),
    ("debian13-t4-converged", "nvidia_driver_version", "550.163.01"), ("debian13-t4-converged", "gpu_settings_clocks", "base"),
    ("debian13-t4-converged", "gpu_settings_mig", True),
    ("debian12-a100-converged", "nvidia_driver_source", "debian"), ("debian13-t4-converged", "nvidia_driver_source", "debian"),
    ("debian12-a100-converged", "nvidia_driver_modules", "proprietary"), ("debian13-t4-converged", "nvidia_driver_modules", "proprietary"),
    ("debian12-a100-nvidia", "nvidia_driver_source", "nvidia"), ("debian12-a100-nvidia", "nvidia_driver_modules", "open"),
}  # fmt: skip
"""Values that the host has already, or that its card cannot be given: nothing is to be planned for these."""
# An address of NVIDIA's repository is of no use to a host whose driver comes from elsewhere.
TRIED = [
    (host, name, value)
    for host in CHOSEN
    for name in OURS
    for value in CHANGES.get(name, [])
    if declared()[name].role in roles_of(host)
    and (not name.startswith("nvidia_driver_repository") or host in ONLY)
    # A release of another branch than the one that is named is an error in the call.
    and (name != "nvidia_driver_version" or host not in ONLY or value.startswith("580."))
]


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_tried(name: str) -> None:
    assert CHANGES.get(name), f"{name} is not tried: a variable that no control reads is a defect"


@pytest.mark.parametrize(("host", "name", "value"), TRIED, ids=[f"{h}-{n}={v}" for h, n, v in TRIED])
def test_a_changed_variable_puts_its_role_in_the_plan(host: str, name: str, value: Any) -> None:
    failing = {f.role for f in findings(host, **{name: value}) if f.status is Status.FAIL}
    same = isinstance(value, str | int) and (host, name, value) in SAME
    assert failing == (set() if same else {declared()[name].role})


def test_every_file_that_a_planner_writes_is_asked_for() -> None:
    ours = {rival_modules.MODPROBE, apt_sources.PATH, nvidia_repository.SOURCE, nvidia_repository.KEYRING, nvidia_repository.PIN,
            gpu_settings.DROP_IN, gpu_settings.UNIT_FILE, gpu_settings.SCRIPT, nccl.nccl_file.PATH, nccl.nccl_env.PATH, *nccl.nccl_platform.paths(), bindings_files.MAP, bindings_files.THREADS}  # fmt: skip
    assert ours <= set(FILES)
