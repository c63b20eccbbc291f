"""Controls of the host's own settings that GPU work feels: CPU clocks, NUMA, locked memory, time."""

from __future__ import annotations

from ..facts.known import Absent, Unknown
from .model import Judged, Severity, Verdict, control, passed, skipped, unknown, warned
from .reading import is_vm, shared_kernel

_SHOWN = 8
_TIME_UNITS = (
    "chrony.service",
    "chronyd.service",
    "systemd-timesyncd.service",
    "ntp.service",
    "ntpsec.service",
)


@control("host.cpu-governor", "Processors run at the clocks that feeding GPUs needs", severity=Severity.LOW)
def governor(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    cpu = host.facts.cpu
    if isinstance(cpu, Unknown):
        return unknown(cpu)
    if not cpu.governors:
        return skipped("the kernel scales no clocks here" + (", the hypervisor does" if is_vm(host) else ""))
    slow = {name: count for name, count in cpu.governors.items() if name != "performance"}
    if not slow:
        return passed(f"performance, on {sum(cpu.governors.values())} processors")
    return warned(
        "performance",
        "; ".join(f"{name} on {count} processors" for name, count in sorted(slow.items())),
        advice="Idle clocks lengthen each kernel launch: `cpupower frequency-set -g performance`, or tuned.",
    )


@control("host.numa", "The kernel moves no memory between NUMA nodes by itself", severity=Severity.LOW)
def numa(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    cpu, settings = host.facts.cpu, host.facts.sysctl
    if isinstance(cpu, Unknown):
        return unknown(cpu)
    nodes = [node for node in cpu.nodes if node.cpus]
    if len(nodes) < 2:
        return skipped("there is one NUMA node")
    if isinstance(settings, Unknown):
        return unknown(settings)
    told = []
    if settings.get("kernel.numa_balancing", "0") != "0":
        told.append(f"kernel.numa_balancing = {settings['kernel.numa_balancing']}")
    if settings.get("vm.zone_reclaim_mode", "0") != "0":
        told.append(f"vm.zone_reclaim_mode = {settings['vm.zone_reclaim_mode']}")
    if told:
        return warned(
            "both 0",
            "; ".join(told),
            advice="Pages that move while a GPU or a NIC uses them cost more than they save; bind processes "
            "to their node instead.",
        )
    return passed(f"{len(nodes)} nodes, each with its own processors")


@control("host.memlock", "RDMA may lock as much memory as it asks for", severity=Severity.MEDIUM)
def memlock(host: Judged) -> Verdict:
    ports, limits = host.facts.rdma, host.facts.limits
    if isinstance(ports, Unknown):
        return unknown(ports)
    if not [port for port in ports if port.active and not port.switch_management]:
        return skipped("no RDMA port is in use")
    if isinstance(limits, Unknown):
        return unknown(limits)
    users = {"logins": limits.session.get("memlock", (0, 0))}
    users |= {name: pairs["memlock"] for name, pairs in limits.services.items() if "memlock" in pairs}
    tight = [f"{who}: {hard} bytes" for who, (_, hard) in users.items() if hard is not None]
    if tight:
        return warned(
            "unlimited",
            "; ".join(tight[:4]),
            advice="NCCL ends with `ibv_reg_mr failed`: set memlock in limits.d and LimitMEMLOCK= "
            "of the services that start jobs.",
        )
    return passed(f"unlimited for {', '.join(users)}")


@control("host.time-sync", "The clock is kept right", severity=Severity.MEDIUM)
def time_sync(host: Judged) -> Verdict:
    if (why := shared_kernel(host)) is not None:
        return why
    clock, units = host.facts.time, host.facts.units
    if isinstance(clock, Unknown):
        return unknown(clock)
    if clock.synchronized is True:
        return passed(f"by {clock.unit}" if clock.unit else "synchronised")
    if isinstance(clock.synchronized, Unknown):
        return unknown(clock.synchronized)
    known = units if not isinstance(units, Unknown | Absent) else {}
    runs = [name for name in _TIME_UNITS if name in known and known[name].runs]
    return warned(
        "synchronised",
        f"{runs[0]} runs and has not reached its source" if runs else "nothing keeps the time",
        advice="Logs of hosts cannot be compared, and certificates fail: install chrony or enable timesyncd.",
    )
