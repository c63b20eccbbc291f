"""Whether hosts that compute together exchange data over the interfaces that NCCL uses: tried, both ways.

A listener on each host for the length of the try, and from each host a connection to its peers, bound to
the interface. Both are processes that write nothing and end with their connection to us.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from provision.errors import Failure
from provision.facts.known import Unknown
from provision.planners import nccl, nccl_file
from provision.planners.nccl_network import unfit
from provision.verify.result import Check, CheckStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.facts import Facts

    from .fleet import Fleet, Session
    from .host import Traveller
    from .managed import Managed

NAME, TITLE = "nccl.peers", "Hosts of a group exchange data over NCCL's interface"
# Up to here each host tries every other; in larger groups, the next ones in the order of names.
ALL_PAIRS = 8
NEXT = 4
_START_SECONDS, _TALK_SECONDS, _LISTEN_SECONDS = 15.0, 90.0, 150.0


@dataclass(frozen=True)
class Place:
    """Where NCCL on a host listens: the interface and its addresses that others reach, by family."""

    interface: str
    v4: str | None
    v6: str | None


def clusters(managed: Mapping[str, Managed]) -> dict[str, tuple[str, ...]]:
    """Groups whose hosts let each other in for NCCL (firewall_cluster_peers), with their hosts' names."""
    found: dict[str, list[str]] = {}
    for name, host in sorted(managed.items()):
        for group in host.profile["firewall_cluster_peers"] or ():
            if group in host.groups:
                found.setdefault(group, []).append(name)
    return {group: tuple(names) for group, names in found.items() if len(names) > 1}


def place(facts: Facts) -> Place | None:
    """The interface that /etc/nccl.conf names; None where it names none that reaches another host."""
    text, interfaces = facts.file(nccl_file.PATH), facts.interfaces
    if not isinstance(text, str) or isinstance(interfaces, Unknown):
        return None
    value = nccl_file.effective(text).get("NCCL_SOCKET_IFNAME")
    if value is None:
        return None
    for interface in interfaces:
        if nccl.matches(value, interface.name) and unfit(interface) is None:
            by_family = {address.is_v6: address.ip for address in reversed(interface.routable)}
            return Place(interface.name, by_family.get(False), by_family.get(True))
    return None


def try_all(fleet: Fleet, travellers: Sequence[Traveller]) -> Mapping[str, Check]:
    """A check for each host that is in a group with another one; nothing for the others."""
    checks: dict[str, Check] = {}
    there = {t.name: t for t in travellers if t.look is not None}
    for group, names in clusters({name: fleet.lines[name].managed for name in there}).items():
        places: dict[str, Place] = {}
        for name in names:
            look = there[name].look
            assert look is not None
            if (at := place(look.judged.facts)) is not None:
                places[name] = at
            else:
                says = f"{nccl_file.PATH} names no interface that reaches the hosts of {group}"
                checks[name] = Check(name, NAME, TITLE, CheckStatus.FAILED, says)
        checks |= exchange({name: fleet.lines[name].session for name in places}, places)
    return checks


def exchange(sessions: Mapping[str, Session], places: Mapping[str, Place]) -> dict[str, Check]:
    """Have each host exchange data with its peers. A host that cannot listen fails by itself."""
    v6 = not all(at.v4 for at in places.values())
    address = {name: (at.v6 if v6 else at.v4) for name, at in places.items()}
    checks: dict[str, Check] = {}
    for name, at in places.items():
        if address[name] is None:
            says = f"{at.interface} has no IPv6 address, and a peer has no other"
            checks[name] = Check(name, NAME, TITLE, CheckStatus.FAILED, says)
    ours = {name: ip for name, ip in address.items() if ip is not None}
    with ExitStack() as stack:
        ports: dict[str, int] = {}
        for name, ip in ours.items():
            try:
                ports[name] = stack.enter_context(_listening(sessions[name], ip, places[name].interface))
            except Failure as e:
                checks[name] = Check(name, NAME, TITLE, CheckStatus.FAILED, e.reason)
        for name in ports:
            peers = [(peer, ours[peer], ports[peer]) for peer in _peers(name, tuple(ports))]
            if peers:
                checks[name] = _talk(sessions[name], name, ours[name], places[name].interface, peers)
    return checks


def _peers(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    at = names.index(name)
    others = names[at + 1 :] + names[:at]
    return others if len(names) <= ALL_PAIRS else others[:NEXT]


def _argv(**asked: Any) -> list[str]:
    program = resources.files("provision.verify.on_host").joinpath("exchange.py").read_text("utf-8")
    return ["python3", "-c", program, json.dumps(asked)]


@contextmanager
def _listening(session: Session, address: str, interface: str) -> Iterator[int]:
    """The port of a listener on a host, which ends with this."""
    argv = session.argv(_argv(listen=[address, interface], seconds=_LISTEN_SECONDS))
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = _line(process)
            if not said.isdigit():
                process.kill()
                words = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
                raise Failure(
                    f"nothing can listen on {address} ({interface}): {words[-1] if words else said!r}"
                )
            yield int(said)
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


def _line(process: subprocess.Popen[bytes]) -> str:
    """The first line of a process, empty where none comes in time."""
    import selectors

    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(_START_SECONDS):
            return ""
    return process.stdout.readline().decode("utf-8", "replace").strip()


def _talk(
    session: Session, name: str, address: str, interface: str, peers: Sequence[tuple[str, str, int]]
) -> Check:
    try:
        done = session.run(_argv(talk=[address, interface], peers=peers), timeout=_TALK_SECONDS)
    except Failure as e:
        return Check(name, NAME, TITLE, CheckStatus.FAILED, e.reason)
    try:
        results = json.loads(done.out)
    except ValueError:
        said = (done.err or done.out).strip().splitlines()
        return Check(name, NAME, TITLE, CheckStatus.FAILED, said[-1] if said else "no answer")
    to = {peer: ip for peer, ip, _ in peers}
    wrong = [
        f"{interface} ({address}) does not reach {r['peer']} ({to[r['peer']]}): {r['wrong']}"
        for r in results
        if r["wrong"]
    ]
    seconds = sum(float(r["seconds"]) for r in results)
    if wrong:
        hint = (
            ". Look at the packet filter of both (role firewall, firewall_cluster_peers), at routes and MTU."
        )
        return Check(name, NAME, TITLE, CheckStatus.FAILED, "; ".join(wrong) + hint, seconds)
    says = f"with {', '.join(to)} over {interface}"
    return Check(name, NAME, TITLE, CheckStatus.PASSED, says, seconds)
