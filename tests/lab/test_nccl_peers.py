"""Lab hosts of one group exchange data over the interface that NCCL is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.profile.compose import compose
from provision.runs.fleet import Fleet
from provision.runs.managed import Managed
from provision.runs.peers import Place, exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.lab import LabHost
    from provision.verify.result import Check

# Drops what comes in but for SSH, as a packet filter does that knows no peers.
FILTER = (
    "nft add table inet away; "
    "nft add chain inet away in '{ type filter hook input priority 0; policy drop; }'; "
    "nft add rule inet away in ct state established,related accept; "
    "nft add rule inet away in tcp dport 22 accept"
)


@pytest.fixture
def fleet(
    request: pytest.FixtureRequest, lab_up: Callable[..., LabHost]
) -> Iterator[tuple[Fleet, list[LabHost]]]:
    hosts = [lab_up() for _ in range(request.param)]
    managed = [Managed(host.target(), compose("test", {}, {}, {})) for host in hosts]
    with Fleet(managed, len(hosts)) as made:
        assert not made.open()
        yield made, hosts


def tried(fleet: Fleet, hosts: list[LabHost]) -> dict[str, Check]:
    sessions = {name: line.session for name, line in fleet.lines.items()}
    return exchange(sessions, {host.name: Place("host0", host.address, None) for host in hosts})


@pytest.mark.parametrize("fleet", [2, pytest.param(8, marks=pytest.mark.full)], indirect=True)
def test_hosts_exchange_data_and_a_filter_between_them_is_told(fleet: tuple[Fleet, list[LabHost]]) -> None:
    made, hosts = fleet
    first, *others = [host.name for host in hosts]
    checks = tried(made, hosts)
    assert {name: str(check.status) for name, check in checks.items()} == dict.fromkeys(checks, "passed"), (
        checks
    )
    assert checks[first].message == f"with {', '.join(others)} over host0"
    session = made.lines[others[-1]].session
    assert session.run(["sh", "-c", FILTER]).rc == 0
    checks = tried(made, hosts)
    assert f"does not reach {others[-1]}" in checks[first].message
    assert "firewall_cluster_peers" in checks[first].message
    assert checks[others[-1]].status == "passed"
    left = "grep -l '[S]O_BINDTODEVICE' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"
    listeners = session.run(["sh", "-c", left])
    assert listeners.out.strip() == "0", "a listener stayed behind"
