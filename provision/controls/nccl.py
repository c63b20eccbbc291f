"""Controls of NCCL's settings: what /etc/nccl.conf gives a job, against what the role computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..planners import nccl as planner
from ..planners import nccl_file
from ..planners.nccl_network import Chosen, unfit
from .model import Judged, Severity, Verdict, control, failed, passed, unknown, warned

if TYPE_CHECKING:
    from ..facts.network import Interface

ROLE = "nccl"
_LIBRARY = "libnccl-net"


def _effective(host: Judged) -> dict[str, str] | Verdict:
    """The settings that NCCL reads from the file; none where there is no file."""
    text = host.facts.file(nccl_file.PATH)
    if isinstance(text, Unknown):
        return unknown(text)
    return {} if isinstance(text, Absent) else nccl_file.effective(text)


def _wanted(host: Judged) -> Chosen | Verdict:
    """What the planner computes, or the verdict where it cannot be told or must not be."""
    for fact in (host.facts.interfaces, host.facts.file(nccl_file.PATH)):
        if isinstance(fact, Unknown):
            return unknown(fact)
    chosen = planner.settings(host.facts, host.profile)
    if chosen.refused:
        return failed("settings that fit this host", chosen.refused)
    return chosen


@control("nccl.interface", "NCCL talks to other hosts over an interface that reaches them", role=ROLE)
def interface(host: Judged) -> Verdict:
    now, chosen = _effective(host), _wanted(host)
    for verdict in (now, chosen):
        if isinstance(verdict, Verdict):
            return verdict
    assert isinstance(now, dict)
    assert isinstance(chosen, Chosen)
    interfaces = host.facts.interfaces
    assert not isinstance(interfaces, Unknown)
    value = now.get("NCCL_SOCKET_IFNAME")
    expected = f"NCCL_SOCKET_IFNAME={chosen.values.get('NCCL_SOCKET_IFNAME', value)}"
    if value is None:
        return failed(expected, f"{nccl_file.PATH} names no interface")
    if (wrong := _unreachable(value, interfaces)) is not None:
        return failed(expected, f"NCCL_SOCKET_IFNAME={value}: {wrong}")
    asked = chosen.values.get("NCCL_SOCKET_IFNAME", value)
    if value != asked:
        return failed(expected, f"NCCL_SOCKET_IFNAME={value}")
    return passed(
        f"NCCL_SOCKET_IFNAME={value}", expected=expected, evidence=_about(chosen, "NCCL_SOCKET_IFNAME")
    )


def _unreachable(value: str, interfaces: tuple[Interface, ...]) -> str | None:
    matched = [i for i in interfaces if planner.matches(value, i.name)]
    if not matched:
        return "this host has no such interface"
    reasons = [f"{i.name} {reason}" for i in matched if (reason := unfit(i)) is not None]
    return ", ".join(reasons) if len(reasons) == len(matched) else None


@control("nccl.variables", "/etc/nccl.conf is as the profile and this host want it", role=ROLE)
def variables(host: Judged) -> Verdict:
    chosen, now = _wanted(host), host.facts.file(nccl_file.PATH)
    if isinstance(chosen, Verdict):
        return chosen
    whole = planner.wanted(host.facts, host.profile, host.stack)
    if whole.refused:
        return failed("settings that fit this host", whole.refused)
    file = next(file for file in whole.files if file.path == nccl_file.PATH)
    if now == file.text:
        return passed(
            f"{len(chosen.values)} settings of ours",
            evidence=tuple(f"{k}={v}" for k, v in chosen.values.items()),
        )
    there = {} if not isinstance(now, str) else nccl_file.effective(now)
    missing = [f"{k}={v}" for k, v in chosen.values.items() if there.get(k) != v]
    extra = [k for k in there if k.startswith("NCCL_") and k not in nccl_file.effective(file.text or "")]
    told = [f"{', '.join(missing)} not set"] if missing else []
    told += [f"{', '.join(extra)} no longer wanted"] if extra else []
    return failed(
        ", ".join(f"{k}={v}" for k, v in chosen.values.items()) or "no setting of ours",
        "; ".join(told) or "the same settings in another form",
    )


@control(
    "nccl.ib",
    "NCCL uses the RDMA ports that carry its traffic, and only those",
    severity=Severity.HIGH,
    role=ROLE,
)
def infiniband(host: Judged) -> Verdict:
    ports = host.facts.rdma
    if isinstance(ports, Unknown):
        return unknown(ports)
    now, chosen = _effective(host), _wanted(host)
    for verdict in (now, chosen):
        if isinstance(verdict, Verdict):
            return verdict
    assert isinstance(now, dict)
    assert isinstance(chosen, Chosen)
    wrong = [
        f"{key} is {now.get(key, 'not set')}"
        for key in ("NCCL_IB_HCA", "NCCL_IB_DISABLE")
        if key in chosen.values and now.get(key) != chosen.values[key]
    ]
    expected = ", ".join(f"{k}={v}" for k, v in chosen.values.items() if k.startswith("NCCL_IB_"))
    if wrong:
        return failed(expected, ", ".join(wrong))
    active = [p for p in ports if p.active and not p.switch_management]
    if now.get("NCCL_IB_DISABLE", "0") not in ("", "0") and active:
        return warned(
            "RDMA in use",
            f"NCCL_IB_DISABLE={now['NCCL_IB_DISABLE']} with {len(active)} active ports",
            advice="nccl_variables asks for it; NCCL then uses sockets only.",
            evidence=_plugins(host),
        )
    fabric = [p for p in ports if not p.switch_management]
    if fabric and not active:
        return warned(
            "an active RDMA port",
            f"none of {len(fabric)} ports is active",
            advice="Look at cables, the subnet manager and the link state (`ibstat`).",
            evidence=tuple(f"{p.device}:{p.port} {p.state}" for p in fabric[:8]),
        )
    said = f"{len(active)} active ports" if active else "no RDMA port on this host, NCCL uses sockets"
    return passed(said, expected=expected, evidence=_about(chosen, "NCCL_IB_") + _plugins(host))


def _about(chosen: Chosen, name: str) -> tuple[str, ...]:
    return tuple(w.says for w in chosen.why if w.about.startswith(name))


def _plugins(host: Judged) -> tuple[str, ...]:
    """A network plugin does not obey NCCL_IB_DISABLE (NVIDIA/nccl-tests issue 373: IBext of HPC-X)."""
    files = host.facts.driver_files
    if isinstance(files, Unknown):
        return ()
    found = [f.path for f in files if _LIBRARY in f.path]
    return (
        (f"network plugin {found[0]}: NCCL_IB_DISABLE does not govern it, NCCL_IBEXT_DISABLE does",)
        if found
        else ()
    )
