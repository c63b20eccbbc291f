"""One pass: the planned roles of every host handed to Ansible, over the sessions that are already open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provision.converge import ConvergeResult, HostVars, connection, converge, with_become_password
from provision.facts.known import Unknown
from provision.transport import ssh

from .planning import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from provision.converge import Event

    from .fleet import Fleet, Line
    from .host import Traveller


def run_pass(
    fleet: Fleet,
    travellers: Iterable[Traveller],
    run_dir: Path,
    *,
    forks: int,
    on_event: Callable[[Event], None],
    check: bool = False,
) -> ConvergeResult:
    """Converge the hosts by their plans. `check` is Ansible's check mode: it changes nothing."""
    hosts = {}
    for t in travellers:
        assert t.plan is not None
        hosts[t.name] = _host_vars(fleet.lines[t.name], t, t.plan.roles)
    return converge(hosts, run_dir, on_event=on_event, forks=forks, check=check)


def play(
    fleet: Fleet,
    travellers: Iterable[Traveller],
    run_dir: Path,
    playbook: str,
    variables: Callable[[Traveller], Mapping[str, Any]],
    *,
    forks: int,
    on_event: Callable[[Event], None],
) -> ConvergeResult:
    """Run a playbook of the collection's own, with further variables for each host."""
    hosts = {}
    for t in travellers:
        host = _host_vars(fleet.lines[t.name], t, (SNAPSHOT,))
        hosts[t.name] = replace(host, variables={**host.variables, **variables(t)})
    name = f"gpu_provision.host.{playbook}"
    return converge(hosts, run_dir, on_event=on_event, forks=forks, playbook=name)


def _host_vars(line: Line, traveller: Traveller, roles: tuple[str, ...]) -> HostVars:
    assert traveller.look is not None
    managed, look = line.managed, traveller.look
    target = line.target
    stack = look.judged.stack
    ways = connection(
        target,
        python=look.recording.answer("python").raw["argv"][0],
        login_is_root=_is_root(look.judged.facts.rights),
        control_path=line.control_path,
        options=() if target.local else ssh.options(target),
    )
    variables = {k: v for k, v in managed.profile.variables.items() if v is not None}
    handed = {"unknown": stack.reason} if isinstance(stack, Unknown) else stack.as_dict()
    variables |= {**ways, "gpu_provision_stack": handed}
    host = HostVars(managed.name, roles, variables, target=target)
    return with_become_password(host, managed.secrets.sudo)


def _is_root(rights: object) -> bool:
    return getattr(rights, "user", None) == "root"
