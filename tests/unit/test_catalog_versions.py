"""Versions are numbers, not strings: on their own, in packages, against bounds."""

from __future__ import annotations

from datetime import date

import pytest

from provision.catalog import Offer, Offers, support
from provision.catalog.numbers import above, below, major, minor, number, starts

TODAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("580.65.06", "580.95.05"),
        ("580.95.05", "580.126.20"),
        ("565.77", "565.100.01"),
        ("565.57.01", "565.77"),
        ("455.23", "455.23.05"),
        ("12.9", "12.10"),
        ("9.9.0.52", "9.10.0.56"),
        ("9.10.2.21", "9.11.0.98"),
        ("2.9.6", "2.30.7"),
    ],
)
def test_order(older: str, newer: str) -> None:
    assert number(older) < number(newer)
    assert below(older, newer)
    assert above(newer, older)
    assert not below(newer, older)


def test_a_missing_part_counts_as_zero() -> None:
    assert number("525.53") == number("525.53.00")
    assert (major("525.53"), minor("13.0.2"), minor("13")) == (525, "13.0", "13.0")


@pytest.mark.parametrize(
    ("version", "prefix", "belongs"),
    [
        ("9.10.2.21", "9.10", True),
        ("9.1.0.70", "9.10", False),
        ("9.10.2.21", "9.1", False),
        ("13.0.2", "13.0.2", True),
    ],
)
def test_series(version: str, prefix: str, belongs: bool) -> None:
    assert starts(version, prefix) is belongs


@pytest.mark.parametrize("text", ["", "abc", "580.95.05-1", "1:580", "13.0rc1", "580.x"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version number"):
        number(text)


def offers(**packages: list[str]) -> Offers:
    """The first version of each package is the candidate."""
    names = {name.replace("_", "-"): versions for name, versions in packages.items()}
    return Offers({n: tuple(Offer(v, "debian", v == vs[0]) for v in vs) for n, vs in names.items()})


@pytest.mark.parametrize(
    ("versions", "release"),
    [
        (["3:550.78-1"], "550.78"),
        (["550.163.01-2", "550.163.01-4~bpo13+1"], "550.163.01"),
        (["580.95.05-0ubuntu0.24.04.2"], "580.95.05"),
        (["580.95.05-0ubuntu1", "580.95.05-0ubuntu0.24.04.2"], "580.95.05"),
        (["1:580.126.20-1", "1:580.95.05-1"], "580.126.20"),
    ],
)
def test_epochs_and_revisions_are_the_packagers(versions: list[str], release: str) -> None:
    found = offers(nvidia_smi=versions).releases(["nvidia-smi"], [], "debian", major(release))
    assert found[-1].version == release
    assert found[-1].packages == {"nvidia-smi": versions[0]}


def test_a_release_counts_only_where_every_package_has_it() -> None:
    both = offers(kernel=["535.261.03-1"], smi=["535.309.01-0+deb12u1", "535.261.03-1"])
    found = both.releases(["kernel", "smi"], [], "debian", 535)
    assert [r.version for r in found] == ["535.261.03"]
    assert found[0].packages == {"kernel": "535.261.03-1", "smi": "535.261.03-1"}


def test_what_apt_would_not_take_by_itself_is_left_alone() -> None:
    ahead = offers(
        kernel=["550.163.01-2", "570.211.01-1~bpo13+1"], smi=["550.163.01-2", "570.211.01-1~bpo13+1"]
    )
    assert ahead.releases(["kernel", "smi"], [], "debian", 570) == ()


def test_another_sources_packages_do_not_count() -> None:
    mixed = Offers({"nvidia-smi": (Offer("535.261.03-1", "debian", True), Offer("620.70.06-1", "nvidia"))})
    assert mixed.releases(["nvidia-smi"], [], "debian", 620) == ()
    assert mixed.newest("nvidia-smi", "nvidia") == "620.70.06-1"


@pytest.mark.parametrize(
    ("branch", "os", "source", "today", "nvidia", "distribution"),
    [
        (580, "ubuntu24.04", "nvidia", TODAY, True, False),
        (535, "ubuntu22.04", "nvidia", TODAY, False, False),
        (535, "debian12", "debian", TODAY, False, True),
        (535, "debian12", "nvidia", TODAY, False, False),
        (535, "debian12", "debian", date(2028, 7, 1), False, False),
        (550, "debian13", "debian", TODAY, False, True),
        (550, "ubuntu24.04", "ubuntu", TODAY, False, False),
        (595, "ubuntu24.04", "nvidia", date(2027, 3, 31), True, False),
        (595, "ubuntu24.04", "nvidia", date(2027, 4, 1), False, False),
    ],
)
def test_support(branch: int, os: str, source: str, today: date, nvidia: bool, distribution: bool) -> None:
    state = support(branch, os=os, source=source, today=today)
    assert state is not None
    assert (state.nvidia, state.distribution) == (nvidia, distribution)
    assert state.supported is (nvidia or distribution)


def test_an_unknown_branch_has_no_state() -> None:
    assert support(999, os="debian12", source="nvidia", today=TODAY) is None
