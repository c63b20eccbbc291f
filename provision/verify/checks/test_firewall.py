"""Ports, tried from this machine while something listens on them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from provision.planners.firewall_refusal import firewalld_runs, refusal
from provision.planners.firewall_sources import NoSource
from provision.verify import outside, ports
from provision.verify.listener import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.facts import Facts
    from provision.verify.listener import Listener
    from provision.verify.outside import Way
    from provision.verify.ports import Ports
    from provision.verify.subject import Subject

AT_ONCE = 16


@dataclass(frozen=True)
class View:
    """The host as this machine sees it over one family of addresses."""

    way: Way
    ours: str
    listener: Listener
    ports: Ports

    def opens(self, names: Sequence[str]) -> dict[str, bool]:
        """Each port that could be tried, and whether it could be reached."""
        tried = [name for name in names if self.why_not(name) is None]

        def one(name: str) -> bool:
            token = None if name in self.ports.served else self.listener.token
            return outside.opens(self.way.address, name, token)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip(tried, pool.map(one, tried), strict=True))

    def why_not(self, name: str) -> str | None:
        """Why a port cannot be tried: nothing listens there, and the listener may not."""
        families = self.ports.served.get(name)
        if families is not None:
            return None if self.way.version in families else "what listens there takes IPv4 only"
        return self.listener.ports.get(name, "it was not asked for")

    def untried(self, names: Sequence[str]) -> str:
        """The ports that cannot be tried, each with its reason."""
        reasons = {name: self.why_not(name) for name in names}
        return "; ".join(f"{told(name)}: {why}" for name, why in reasons.items() if why)

    @property
    def between(self) -> str:
        """A hint where the host knows itself by another address than we do."""
        known = self.listener.address
        if not known or outside.version(known) != self.way.version or known == self.way.address:
            return ""
        return f"; the host knows itself as {known}, so look at what stands before it, too"


def told(name: str) -> str:
    proto, _, number = name.partition(":")
    return f"{number}/{proto}"


@pytest.fixture(scope="module")
def view(subject: Subject, facts: Facts) -> Iterator[Callable[[int], View]]:
    """The view over IPv4 or IPv6; what keeps a host or a family from being tried skips its checks."""
    if subject.target.local:
        pytest.skip("this machine is not seen from outside")
    if not subject.profile["firewall_managed"]:
        pytest.skip("the packet filter is left to others (firewall_managed: false)")
    if firewalld_runs(facts):
        pytest.skip("firewalld looks after the packet filter here")
    where = outside.dialled(subject.target)
    if where.through:
        pytest.skip(f"this machine does not reach the host itself, but by way of {where.through}")
    try:
        refused = refusal(facts, subject.profile)
        chosen = ports.ports(facts, subject.profile)
    except NoSource as e:
        pytest.fail(str(e))
    if refused:
        pytest.skip(f"the role does not run here: {refused}")
    known = {way.version: way for way in outside.ways(where, facts)}
    with listening(subject, chosen.unserved) as listener:

        def over(version: int) -> View:
            way = known.get(version)
            if way is None:
                pytest.skip(f"this machine has no way to the host over IPv{version}")
            seen = listener.seen_from
            same = bool(seen) and outside.version(seen) == version
            return View(way, seen if same else way.ours, listener, chosen)

        yield over


def opened(view: View) -> None:
    """What the profile opens to us is reached; what cannot be tried is named."""
    wanted = view.ports.open_for(view.ours)
    if not wanted:
        pytest.skip(f"the profile opens no port to {view.ours} beside sshd's")
    if not view.way.stands:
        pytest.skip(f"not even sshd answers at {view.way.address}")
    closed = [told(name) for name, is_open in view.opens(wanted).items() if not is_open]
    assert not closed, f"not reached at {view.way.address}: {', '.join(closed)}{view.between}"
    if untried := view.untried(wanted):
        pytest.skip(f"reached, but for what could not be tried: {untried}")


def refused(view: View, subject: Subject, facts: Facts) -> None:
    """What nobody opened to us is not reached, though something listens there."""
    if why := ports.exempted(facts, subject.profile, view.way.address, view.ours):
        pytest.skip(why)
    seen = view.opens(view.ports.shut_for(view.ours))
    assert any(name in seen for name in view.ports.spare), (
        f"no listener could be had on a port that nobody asked for: {view.untried(view.ports.spare)}"
    )
    reached = [told(name) for name, is_open in seen.items() if is_open]
    assert not reached, f"nobody opened it to {view.ours}, and it was reached: {', '.join(reached)}"
    if not view.way.stands:
        pytest.skip(f"nothing was reached at {view.way.address}, not even sshd, so that shows nothing")


def test_what_the_profile_opens_is_reached_over_ipv4(view: Callable[[int], View]) -> None:
    """Ports that the profile opens are reached over IPv4."""
    opened(view(4))


def test_what_the_profile_opens_is_reached_over_ipv6(view: Callable[[int], View]) -> None:
    """Ports that the profile opens are reached over IPv6."""
    opened(view(6))


def test_what_nobody_opened_is_refused_over_ipv4(
    view: Callable[[int], View], subject: Subject, facts: Facts
) -> None:
    """A port that nobody opened is refused over IPv4, though something listens on it."""
    refused(view(4), subject, facts)


def test_what_nobody_opened_is_refused_over_ipv6(
    view: Callable[[int], View], subject: Subject, facts: Facts
) -> None:
    """A port that nobody opened is refused over IPv6, though something listens on it."""
    refused(view(6), subject, facts)
