"""One pass: the planned roles of every host handed to Ansible, over the sessions that are already open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.converge import ConvergeResult, HostVars, connection, converge, with_become_password
from provision.facts.known import Unknown
from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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
    hosts = {t.name: _host_vars(fleet.lines[t.name], t) for t in travellers}
    return converge(hosts, run_dir, on_event=on_event, forks=forks, check=check)


def _host_vars(line: Line, traveller: Traveller) -> HostVars:
    assert traveller.look is not None
    assert traveller.plan is not None
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
    host = HostVars(managed.name, traveller.plan.roles, variables, target=target)
    return with_become_password(host, managed.secrets.sudo)


def _is_root(rights: object) -> bool:
    return getattr(rights, "user", None) == "root"
