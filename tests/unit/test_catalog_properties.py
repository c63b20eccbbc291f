"""The resolver against an oracle that tries every combination (catalog_oracle.py)."""

from __future__ import annotations

import dataclasses
from datetime import date
from itertools import combinations
from pathlib import Path

from catalog_oracle import BRANCHES, CARDS, CUDNN, MINORS, NCCL, SYSTEMS, Ask, every, num, rank
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.catalog import Demands, Offer, Offers, PciId, Stack, find, resolve
from provision.catalog.gpus import all_gpus
from provision.errors import Usage
from provision.facts.versions import compare_debian, upstream

# One or more devices of every architecture, data center and consumer, and those with rules of their own.
DEVICES = sorted(
    Path(__file__).with_name("catalog").joinpath("devices.txt").read_text(encoding="utf-8").split()
)
LIBRARY = {
    "cudnn": sorted({".".join(v.split(".")[:2]) for vs in CUDNN["releases"].values() for v in vs}, key=num),
    "nccl": sorted({".".join(v.split(".")[:2]) for vs in NCCL["releases"].values() for v in vs}, key=num),
}
RELEASES = [r for b in BRANCHES.values() for r in (b["first"], b["newest"]) if r]


NAMES = st.sampled_from([gpu.name for gpu in all_gpus()])


def optional(values: list[str]) -> st.SearchStrategy[str | None]:
    return st.one_of(st.none(), st.sampled_from(values))


ASKS = st.builds(
    Ask,
    devices=st.lists(st.sampled_from(DEVICES), max_size=3, unique=True).map(tuple),
    os=st.sampled_from(sorted(SYSTEMS)),
    arch=st.sampled_from(["x86_64", "x86_64", "x86_64", "aarch64"]),
    source=optional(["nvidia", "debian", "ubuntu"]),
    driver=optional([str(b) for b in BRANCHES] + RELEASES),
    modules=optional(["open", "proprietary"]),
    cuda=st.lists(st.sampled_from([f"{a}.{b}" for a, b in MINORS]), max_size=2, unique=True).map(tuple),
    cudnn=optional(LIBRARY["cudnn"]),
    nccl=optional(LIBRARY["nccl"]),
    today=st.dates(date(2025, 1, 1), date(2030, 1, 1)),
)
# Most demands are left out most of the time, or next to nothing would be satisfiable.
FEW = st.builds(
    lambda ask, kept: dataclasses.replace(
        ask,
        **{name: None for name in ("source", "driver", "modules", "cudnn", "nccl") if name not in kept},
        **({} if "cuda" in kept else {"cuda": ()}),
    ),
    ASKS,
    st.sets(st.sampled_from(["source", "driver", "modules", "cuda", "cudnn", "nccl"]), max_size=2),
)


def ask_resolver(ask: Ask) -> Stack:
    return resolve(
        [PciId("10de", device) for device in ask.devices],
        os=ask.os or "",
        arch=ask.arch or "",
        today=ask.today,
        archive=None,
        demands=Demands(
            driver=ask.driver,
            cuda=ask.cuda or None,
            cudnn=ask.cudnn,
            nccl=ask.nccl,
            source=ask.source or "auto",
            modules=ask.modules or "auto",
        ),
    )


def named(ask: Ask) -> dict[str, tuple[str, object]]:
    """The words in which a conflict names each demand, with the field and value behind them."""
    words: dict[str, tuple[str, object]] = {}
    for device in ask.devices:
        words[f"{find(PciId('10de', device)).name} (10de:{device})"] = ("devices", device)
    for version in ask.cuda:
        words[f"--cuda {version}"] = ("cuda", version)
    for name in ("os", "arch", "source", "driver", "modules", "cudnn", "nccl"):
        if getattr(ask, name):
            words[f"--{name} {getattr(ask, name)}"] = (name, getattr(ask, name))
    return words


def only(ask: Ask, demands: tuple[str, ...]) -> Ask:
    """The question with these demands alone; everything else is left free."""
    words = named(ask)
    kept = [words[d] for d in demands]
    single = {field: value for field, value in kept if field not in {"devices", "cuda"}}
    return Ask(
        devices=tuple(str(v) for f, v in kept if f == "devices"),
        cuda=tuple(str(v) for f, v in kept if f == "cuda"),
        today=ask.today,
        **single,  # type: ignore[arg-type]
    )


def satisfiable(ask: Ask) -> bool:
    return next(every(ask), None) is not None


@settings(max_examples=120, deadline=None, derandomize=True)
@given(FEW)
def test_the_best_set_is_found_and_satisfies_everything(ask: Ask) -> None:
    fitting = list(every(ask))
    stack = ask_resolver(ask)
    assert stack.satisfiable == bool(fitting)
    if not fitting:
        return
    best = min(fitting, key=lambda found: rank(ask, found))
    driver = stack.driver
    assert driver is not None
    assert (driver.branch, driver.modules, driver.source) == (best.branch, best.modules, best.source)
    assert (stack.cuda.version if stack.cuda else None) == (best.cuda[0] if best.cuda else None)
    assert bool(stack.cudnn) == bool(best.cudnn)
    assert bool(stack.nccl) == bool(best.nccl)
    if stack.cudnn and best.cudnn:
        assert best.cudnn.startswith(stack.cudnn.version)
        assert all(f"={best.cudnn}-" in pin for pin in stack.cudnn.pin)
    # The minimum is enough by itself: with exactly that release the same set still fits.
    exact = dataclasses.replace(ask, driver=driver.version or driver.minimum)
    kept = {
        "devices": ask.devices,
        "os": ask.os,
        "arch": ask.arch,
        "source": driver.source,
        "modules": driver.modules,
    }
    at_minimum = dataclasses.replace(exact, **kept, cuda=best.cuda or ask.cuda)
    if "." in (at_minimum.driver or ""):
        assert satisfiable(at_minimum)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ASKS)
def test_a_conflict_is_real_minimal_and_of_the_smallest_size(ask: Ask) -> None:
    stack = ask_resolver(ask)
    assert stack.satisfiable == satisfiable(ask)
    if stack.satisfiable:
        return
    assert stack.conflicts
    size = len(stack.conflicts[0].demands)
    told = {frozenset(c.demands) for c in stack.conflicts}
    for demands in combinations(named(ask), size):
        # Every clash of that size is told, and nothing that is none.
        assert (frozenset(demands) in told) != satisfiable(only(ask, demands))
    for smaller in range(1, size):
        for demands in combinations(named(ask), smaller):
            assert satisfiable(only(ask, demands))


VERSIONS = ["535.216.03-1", "535.261.03-1", "535.309.01-0+deb12u1", "535.309.01-1", "550.163.01-2"]
PACKAGES = ("kernel", "firmware", "smi", "libcuda")
ARCHIVE = st.fixed_dictionaries({name: st.lists(st.sampled_from(VERSIONS), unique=True) for name in PACKAGES})


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ARCHIVE, st.sampled_from([535, 550]))
def test_a_release_of_an_archive_can_be_installed_whole(archive: dict[str, list[str]], branch: int) -> None:
    offers = Offers({name: tuple(Offer(v, "debian", v == vs[0]) for v in vs) for name, vs in archive.items()})
    found = offers.releases(PACKAGES[:3], PACKAGES[3:], "debian", branch)
    for release in found:
        assert set(release.packages) == set(PACKAGES)
        for name, version in release.packages.items():
            assert version in archive[name]
            assert compare_debian(version, archive[name][0]) <= 0, "nothing that apt would not take by itself"
            if name != "libcuda":
                assert upstream(version) == release.version
    # And none is missed: a version that each package has, not above any candidate, is there.
    for version in {upstream(v) for v in VERSIONS if v.startswith(str(branch))}:
        whole = all(
            any(upstream(v) == version and compare_debian(v, archive[name][0]) <= 0 for v in archive[name])
            for name in PACKAGES[:3]
        )
        assert (version in {r.version for r in found}) == (whole and bool(archive["libcuda"]))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.one_of(
        st.text(max_size=40), st.sampled_from(["A100", "Tesla", "RTX 4000", "10de:", "GeForce 8"]), NAMES
    )
)
def test_any_name_is_a_gpu_or_a_refusal(name: str) -> None:
    try:
        gpu = find(name)
    except Usage:
        return
    assert gpu.architecture
    assert gpu.modules


def test_the_oracle_knows_every_device_that_is_asked_about() -> None:
    assert set(DEVICES) <= set(CARDS)
