"""fail2ban where it runs: it keeps its jails, and never bans the operator or a peer from SSH.

The later file wins in fail2ban, and `%(known/ignoreip)s` is what the earlier ones said (jail.conf(5)); where
they say nothing, that is an error which stops fail2ban. So an empty value stands in a file that sorts first.
"""

from __future__ import annotations

import re
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
FIRST = "/etc/fail2ban/jail.d/00-gpu-provision.conf"
JAIL_CONF = "/etc/fail2ban/jail.conf"
PATHS = (FIRST, PATH)
# The jail of sshd, and the one that bans from everything whoever was banned often.
JAILS = ("sshd", "recidive")
HEAD = "# Written by gpu-provision (role firewall): who is never banned, beside whom others exempt.\n"
FIRST_TEXT = (
    "# Written by gpu-provision (role firewall): something for zz-gpu-provision.local to add to.\n"
    "[DEFAULT]\nignoreip =\n"
)
INDENT = " " * 11


def runs(facts: Facts) -> bool:
    units = facts.units
    known = {} if isinstance(units, Unknown | Absent) else units
    return "fail2ban.service" in known and known["fail2ban.service"].runs


def files(facts: Facts, profile: Profile) -> list[File]:
    """The jails' settings; gone where fail2ban is. Raises NoSource."""
    if not runs(facts):
        return [file for path in PATHS for file in gone_unless(facts, path, None)]
    free, there = exempt(profile), facts.file(PATH)
    peers = " ".join(["127.0.0.1/8", *map(word, free.v4), *map(word, free.v6)])
    # Peers stand in one line, each operator that this project was run from in one of its own.
    jail = there.partition(f"[{JAILS[1]}]")[0] if isinstance(there, str) else ""
    known = [line.strip() for line in jail.splitlines() if line.startswith(INDENT)][1:]
    lines = "".join(f"{INDENT}{line}\n" for line in (peers, *latest(known, operator(facts))))
    jails = "".join(f"[{name}]\nignoreip = %(known/ignoreip)s\n{lines}" for name in JAILS)
    # Somebody who wrote into fail2ban's own file, which is read before ours, has said something already.
    main = facts.file(JAIL_CONF)
    said = isinstance(main, str) and re.search(r"(?m)^ignoreip\s*=", main) is not None
    first = gone_unless(facts, FIRST, None if said else FIRST_TEXT)
    return [*first, *gone_unless(facts, PATH, HEAD + jails)]
