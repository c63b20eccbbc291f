"""fail2ban where it runs: it keeps its jails, and never bans the operator or a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .firewall_files import gone_unless, latest
from .firewall_openings import exempt, operator
from .firewall_sources import text as word

if TYPE_CHECKING:
    from ..facts import Facts
    from ..profile.model import Profile
    from .wanted import File

PATH = "/etc/fail2ban/jail.d/zz-gpu-provision.local"
HEAD = """\
# Written by gpu-provision (role firewall): who is never banned, beside whom the host's own files name.
[DEFAULT]
ignoreip = %(known/ignoreip)s
"""


def runs(facts: Facts) -> bool:
    units = facts.units
    known = {} if isinstance(units, Unknown | Absent) else units
    return "fail2ban.service" in known and known["fail2ban.service"].runs


def files(facts: Facts, profile: Profile) -> list[File]:
    """The jail's setting; gone where fail2ban is. Raises NoSource."""
    if not runs(facts):
        return gone_unless(facts, PATH, None)
    free, there, me = exempt(profile), facts.file(PATH), operator(facts)
    peers = " ".join(["127.0.0.1/8", *map(word, free.v4), *map(word, free.v6)])
    # Peers stand in one line, each operator that this project was run from in one of its own.
    known = there.removeprefix(HEAD).splitlines()[1:] if isinstance(there, str) else []
    operators = latest([line.strip() for line in known], me)
    return gone_unless(facts, PATH, HEAD + "".join(f"           {line}\n" for line in (peers, *operators)))
