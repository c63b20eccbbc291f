"""Role limits: every variable is read by a control, nothing named is nothing judged, and no limit locks anybody out."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import pytest
from planner_host import MISSING, facts, link, profile, said, stack, text

from provision.controls import all_controls
from provision.controls.model import Judged, Status
from provision.facts.known import Unknown
from provision.plan.changes import changes
from provision.planners import limits, limits_kernel, limits_processes
from provision.profile.compose import compose
from provision.profile.declared import declared

CONTROLS = ("host.limits", "host.kernel-settings", "host.time-service")
PATHS = (
    limits_processes.LOGINS,
    limits_processes.SERVICES,
    limits_processes.SESSIONS,
    limits_kernel.SYSCTL,
    limits_kernel.TMPFILES,
)
CPU = {
    "governors": {"schedutil": 8},
    "available_governors": ["performance", "schedutil"],
    "nodes": [],
    "idle_latency": 0,
}
SYSCTL = {
    "vm.swappiness": "60", "vm.dirty_ratio": "20", "vm.dirty_background_ratio": "10", "vm.nr_hugepages": "0",
    "kernel.numa_balancing": "1", "fs.nr_open": "1048576", "net.core.rmem_max": "212992", "net.core.wmem_max": "212992",
    "net.ipv4.tcp_rmem": "4096\t131072\t6291456", "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
}  # fmt: skip
MANAGER = {
    "DefaultLimitMEMLOCK": "8388608",
    "DefaultLimitNOFILE": "524288",
    "DefaultLimitSTACKSoft": "8388608",
}
# A value for each variable that the plain host does not have.
VALUES: dict[str, Any] = {
    "limits_memlock": "unlimited", "limits_nofile": 1048576, "limits_stack": 67108864, "limits_swappiness": 10,
    "limits_dirty_ratio": 40, "limits_dirty_background_ratio": 5, "limits_hugepages": 16, "limits_transparent_hugepages": "madvise",
    "limits_numa_balancing": False, "limits_network_buffers": "auto", "limits_cpu_governor": "performance",
    "limits_cpu_idle_latency": 99, "limits_time_sync": True,
}  # fmt: skip


def host(items: dict[str, Any] | None = None, **variables: Any) -> Judged:
    base = {
        **{f"file:{path}": MISSING for path in PATHS},
        f"file:{limits_kernel.HUGE}": text("[always] madvise never\n"),
        "cpu": said(CPU),
        "sysctl": said("".join(f"{name} = {value}\n" for name, value in SYSCTL.items())),
        "limits": said({"session": {"memlock": [8388608, 8388608]}, "services": {}, "systemd": MANAGER}),
        "net": said([{"name": "ens5", "speed": 25000}]),
    }
    return Judged(facts(items={**base, **(items or {})}), profile(**variables), stack())


def status(judged: Judged) -> dict[str, Status]:
    return {name: all_controls()[name].find(judged).status for name in CONTROLS}


def wanted(judged: Judged) -> Any:
    return limits.wanted(judged.facts, judged.profile, judged.stack)


def converged(**variables: Any) -> Judged:
    """The plain host with all in place that the planner asks for."""
    plan = wanted(host(**variables))
    assert plan.refused is None, plan.refused
    values, _ = limits_kernel.settings(host(**variables).facts, profile(**variables))
    lines = limits_kernel.written(host(**variables).facts, profile(**variables))
    huge = {"always": "[always] madvise never", "madvise": "always [madvise] never"}[
        lines.get(limits_kernel.HUGE, "always")
    ]
    cpu = {
        **CPU,
        "governors": {lines.get(limits_kernel.GOVERNORS, "schedutil"): 8},
        "idle_latency": int(lines.get(limits_kernel.LATENCIES, 0)),
    }
    manager = {**MANAGER, **limits_processes.defaults(host(**variables).facts, profile(**variables))}
    running = "\n\n".join(
        f"Id={u.name}\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled" for u in plan.units
    )
    return host(
        {
            **{f"file:{file.path}": text(file.text) for file in plan.files if file.text},
            f"file:{limits_kernel.HUGE}": text(f"{huge}\n"),
            "cpu": said(cpu),
            "sysctl": said("".join(f"{name} = {value}\n" for name, value in {**SYSCTL, **values}.items())),
            "limits": said({"session": {"memlock": [1, 1]}, "services": {}, "systemd": manager}),
            **({"units": said(running)} if running else {}),
        },
        **variables,
    )


def test_every_variable_has_a_value_to_try() -> None:
    assert set(VALUES) == {name for name, variable in declared().items() if variable.role == "limits"}


def test_nothing_named_is_nothing_judged_and_nothing_done() -> None:
    assert set(status(host()).values()) == {Status.SKIP}
    assert not changes(wanted(host()), host().facts)
    unasked = host({f"file:{path}": {"not_asked": "an older recording"} for path in PATHS})
    assert set(status(unasked).values()) == {Status.SKIP}


@pytest.mark.parametrize("name", VALUES)
def test_a_named_variable_puts_the_role_in_the_plan_until_it_holds(name: str) -> None:
    before = status(host(**{name: VALUES[name]}))
    assert list(before.values()).count(Status.FAIL) == 1, before
    assert changes(wanted(host(**{name: VALUES[name]})), host().facts)
    after = converged(**{name: VALUES[name]})
    assert set(status(after).values()) == {Status.SKIP, Status.PASS}, status(after)
    assert not changes(wanted(after), after.facts)


@pytest.mark.parametrize("name", [name for name in VALUES if name != "limits_time_sync"])
def test_what_is_no_longer_named_goes_away(name: str) -> None:
    made = converged(**{name: VALUES[name]})
    now = Judged(made.facts, profile(), stack())
    assert Status.FAIL in status(now).values()
    plan = wanted(now)
    assert plan.files
    assert all(file.text is None for file in plan.files)


def test_all_at_once_and_one_value_that_something_else_changed() -> None:
    made = converged(**VALUES)
    assert set(status(made).values()) == {Status.PASS}
    undone = host(
        {**made.facts.recording.items, "sysctl": said("vm.swappiness = 60\nfs.nr_open = 1048576\n")}, **VALUES
    )
    assert status(undone)["host.kernel-settings"] is Status.FAIL
    assert "set vm.swappiness to 10 (now 60)" in wanted(undone).steps


def test_more_files_than_the_kernel_gives_would_shut_everybody_out() -> None:
    assert "every login would fail" in wanted(host(limits_nofile=1048577)).refused
    unknown = {"sysctl": said("vm.swappiness = 60\n")}
    assert "fs.nr_open is not known" in wanted(host(unknown, limits_nofile=4096)).refused


def test_a_shared_kernel_is_left_alone() -> None:
    inside = host({"virtualization": said("systemd-nspawn\n")}, **VALUES)
    plan = wanted(inside)
    assert {file.path for file in plan.files} == set(PATHS[:3])
    assert not plan.steps
    assert not plan.units
    assert status(inside)["host.kernel-settings"] is Status.SKIP
    assert any("left alone" in why.says for why in plan.why)


@pytest.mark.parametrize(
    ("speed", "largest"),
    [(1000, 67108864), (10000, 67108864), (25000, 134217728), (100000, 268435456), (400000, 268435456)],
)
def test_buffers_follow_the_fastest_interface_with_an_address(speed: int, largest: int) -> None:
    net = [{"name": "ens5", "speed": speed}, {"name": "ens6", "speed": 800000}]
    items = {"net": said(net), "ip.addresses": said([link("ens5", "10.0.0.5"), link("ens6", None)])}
    values, _ = limits_kernel.settings(host(items).facts, profile(limits_network_buffers="auto"))
    assert values["net.core.rmem_max"] == str(largest)


def test_buffers_are_left_alone_where_no_speed_is_told_and_it_can_be_named() -> None:
    items = {"net": said([{"name": "ens5", "speed": -1}])}
    planned = wanted(host(items, limits_network_buffers="auto"))
    assert planned.refused is None
    assert any("left alone: no interface with an address tells its speed" in why.says for why in planned.why)
    assert wanted(host(items, limits_network_buffers=100)).refused is None


def test_who_else_sets_clocks_is_named() -> None:
    tuned = "Id=tuned.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled"
    assert "tuned.service" in wanted(host({"units": said(tuned)}, limits_cpu_governor="performance")).refused
    assert "performance, schedutil" in wanted(host(limits_cpu_governor="fast")).refused


def test_a_guest_without_clocks_of_its_own_is_given_none() -> None:
    guest = {"cpu": said({"governors": {}, "nodes": [], "idle_latency": None})}
    judged = host(guest, limits_cpu_governor="performance", limits_cpu_idle_latency=10)
    assert not [file for file in wanted(judged).files if file.text]


def test_the_time_service_that_is_there_is_taken() -> None:
    chrony = "Id=chrony.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=disabled"
    plan = wanted(host({"units": said(chrony)}, limits_time_sync=True))
    assert [unit.name for unit in plan.units] == ["chrony.service"]
    assert not plan.packages
    assert wanted(host({"dpkg.list": said("ii \tapt\t2.6\tamd64\n")}, limits_time_sync=True)).packages == (
        "systemd-timesyncd",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limits_memlock", "much"), ("limits_memlock", -1), ("limits_memlock", True), ("limits_stack", "8M"), ("limits_nofile", 10),
        ("limits_swappiness", 201), ("limits_dirty_ratio", 0), ("limits_network_buffers", "fast"), ("limits_cpu_idle_latency", -1),
        ("limits_transparent_hugepages", "sometimes"),
    ],
)  # fmt: skip
def test_a_value_of_no_such_shape_is_a_wrong_call(name: str, value: Any) -> None:
    with pytest.raises(Exception, match=name):
        compose("test", {}, {}, {name: value})


def test_what_cannot_be_read_is_unknown() -> None:
    denied = {f"file:{limits_processes.LOGINS}": {"denied": True}, "limits": {"missing": True}}
    assert status(host(denied, limits_memlock="unlimited"))["host.limits"] is Status.UNKNOWN
    quiet = host(
        {**converged(limits_swappiness=10).facts.recording.items, "sysctl": {"missing": True}},
        limits_swappiness=10,
    )
    assert status(quiet)["host.kernel-settings"] is Status.UNKNOWN
    assert isinstance(quiet.facts.sysctl, Unknown)


def test_a_host_that_may_not_raise_limits_gives_what_it_has() -> None:
    bound = {
        "rights": said({"user": "root", "root": True, "capabilities": "00000000fcecbfff"}),
        "limits": said(
            {
                "session": {
                    "memlock": [8388608, 8388608],
                    "nofile": [1024, 20000],
                    "stack": [8388608, "unlimited"],
                },
                "systemd": MANAGER,
            }
        ),
    }
    plan = wanted(host(bound, limits_memlock="unlimited", limits_nofile=65536, limits_stack=67108864))
    logins = plan.files[0].text
    assert "root hard memlock 8192\n" in logins
    assert "*    soft nofile  20000\n" in logins
    assert "*    soft stack   65536\n" in logins
    assert sum("CAP_SYS_RESOURCE" in why.says for why in plan.why) == 2
