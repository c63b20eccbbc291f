"""Ports that docker publishes, closed in DOCKER-USER: docker's own rules let them in past every input chain.

docker makes the chain where it is missing and keeps what others put into it, over its restarts too
(docs.docker.com, "Packet filtering and firewalls"). Ours is a chain of its own that DOCKER-USER jumps to, so
that rules of others in it stay. Its name carries what it holds: nft does not show iptables' comments.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .firewall_sources import text as word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts import Facts
    from ..facts.firewall import Chain
    from ..profile.model import Profile
    from .firewall_openings import Opening

SCRIPT = "/usr/local/lib/gpu-provision/docker-user"
CHAIN = "GPU-PROVISION"
_TOOLS = {4: "iptables", 6: "ip6tables"}

# Makes the loaded rules follow the script: runs it, or takes its chain away where it is not there (any more).
FOLLOW = (
    f"sh -c 'if [ -x {SCRIPT} ]; then exec {SCRIPT}; fi; "
    "for tool in iptables ip6tables; do "
    f'for old in $($tool -w -S 2>/dev/null | sed -n "s/^-N \\({CHAIN}[^ ]*\\)$/\\1/p"); do '
    "$tool -w -D DOCKER-USER -j $old; $tool -w -F $old; $tool -w -X $old; "
    "done; done 2>/dev/null; true'"
)
_TEXT = r"""#!/bin/sh
# Written by gpu-provision (role firewall): who may come to ports that docker publishes.
set -eu
chain=@CHAIN@

load() {
    "$1" -w -n -L DOCKER-USER >/dev/null 2>&1 || "$1" -w -N DOCKER-USER
    "$1-restore" -w --noflush
    "$1" -w -C DOCKER-USER -j "$chain" 2>/dev/null || "$1" -w -I DOCKER-USER 1 -j "$chain"
    # The new chain stands first already: taking an older one away leaves no gap.
    "$1" -w -S | sed -n 's/^-N \(GPU-PROVISION[^ ]*\)$/\1/p' | while read -r old; do
        [ "$old" != "$chain" ] || continue
        "$1" -w -D DOCKER-USER -j "$old" 2>/dev/null || :
        "$1" -w -F "$old"
        "$1" -w -X "$old"
    done
}

load iptables <<'RULES'
@RULES4@
RULES
load ip6tables <<'RULES'
@RULES6@
RULES
"""


def wanted(facts: Facts, profile: Profile) -> bool:
    """Whether published ports are to be closed: asked for, and there is docker."""
    engines = facts.engines
    there = not isinstance(engines, Unknown) and any(e.name == "docker" for e in engines)
    return profile["firewall_docker_published"] == "close" and there


def script(openings: Sequence[Opening]) -> str:
    """The program that loads the chain; unit and role run it, as often as they like."""
    name = chain_name(openings)
    text = _TEXT.replace("@CHAIN@", name)
    for family in _TOOLS:
        text = text.replace(f"@RULES{family}@", "\n".join(_table(openings, family, name)))
    return text


def chain_name(openings: Sequence[Opening]) -> str:
    """The name of the chain for these openings."""
    rules = "\n".join(rule for family in _TOOLS for rule in _table(openings, family, CHAIN))
    return f"{CHAIN}-{hashlib.sha256(rules.encode()).hexdigest()[:10]}"


def is_loaded(chains: Sequence[Chain], openings: Sequence[Opening]) -> bool:
    """Whether DOCKER-USER sends IPv4 packets through the chain of exactly these openings."""
    name = chain_name(openings)
    users = [c for c in chains if c.family == "ip" and c.name == "DOCKER-USER"]
    ours = [c for c in chains if c.family == "ip" and c.name == name]
    whole = list(_table(openings, 4, name))
    return any(len(c.rules) == len(whole) - 3 for c in ours) and any(
        name in r for c in users for r in c.rules
    )


def any_loaded(chains: Sequence[Chain]) -> bool:
    return any(c.name.startswith(CHAIN) for c in chains)


def _table(openings: Sequence[Opening], family: int, name: str) -> Iterator[str]:
    """What iptables-restore reads: two lines, the rules, COMMIT."""
    yield from ("*filter", f":{name} - [0:0]")
    yield f"-A {name} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN"
    # Only what docker sends on to a container; routed traffic and other guests are not ours to judge.
    yield f"-A {name} -m conntrack ! --ctstate DNAT -j RETURN"
    for bridge in ("docker0", "br-+"):
        yield f"-A {name} -i {bridge} -j RETURN"
    for opening in openings:
        ports = opening.ports.replace("-", ":")
        rule = f"-p {opening.proto} -m conntrack --ctorigdstport {ports} -j RETURN"
        if opening.sources is None:
            yield f"-A {name} {rule}"
            continue
        for network in opening.sources.v4 if family == 4 else opening.sources.v6:
            yield f"-A {name} -s {word(network)} {rule}"
    yield f"-A {name} -p tcp -j REJECT --reject-with tcp-reset"
    yield from (f"-A {name} -j DROP", "COMMIT")
