"""An independent answer to the resolver's questions: it reads the data itself and tries every combination.

It shares no code with the resolver. Versions are tuples of numbers; a branch whose newest release is not
known is taken to have one that is new enough for everything.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import provision.catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(provision.catalog.__file__).with_name("data")
Number = tuple[int, ...]
ENDLESS: Number = (10**6,)


@cache
def num(text: str) -> Number:
    return tuple(int(part) for part in text.split("."))


def raw(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load((DATA / f"{name}.yml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    return found


CUDA, DRIVERS, ARCH = raw("cuda"), raw("drivers"), raw("architectures")
CUDNN, NCCL, PLACES, PACKAGES = raw("cudnn"), raw("nccl"), raw("distributions"), raw("packages")
BRANCHES = {b["branch"]: b for b in DRIVERS["branches"]}
SYSTEMS = {d["os"]: d for d in PLACES["distributions"]}
MINORS = sorted({num(t["version"])[:2] for t in CUDA["toolkits"] if not t.get("preview")})
CHIPS = {chip: row for row in ARCH["chips"] for chip in row["chips"]}
ARCHITECTURES = {a["name"]: a for a in ARCH["architectures"]}
CAPABILITIES = {c["cc"]: c for c in ARCH["capabilities"]}


@dataclass(frozen=True)
class Card:
    """What a device row says, worked out again from the files."""

    device: str
    first: tuple[Number, ...]
    last: int | None
    modules: tuple[str, ...]
    cc: str | None
    segment: str


def cards() -> dict[str, Card]:
    found = {}
    for line in (DATA / "gpus.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith(("#", "device\t")):
            continue
        device, _, _, chip, first, _, last, modules, segment, _ = line.split("\t")
        kind = ARCHITECTURES[CHIPS[chip]["architecture"]]
        own = CHIPS[chip].get("first") or kind["first"]
        card = Card(
            device,
            tuple(num(f) for f in first.split()) or ((own,),),
            int(last) if last else kind["last"],
            (modules,) if modules else tuple(kind["modules"]),
            CHIPS[chip]["cc"],
            segment,
        )
        # Rows of one device differ in name alone, but for those that the tests leave out.
        found.setdefault(device, card)
    return found


CARDS = cards()


@dataclass(frozen=True)
class Ask:
    """A question by its parts; None is a demand that is not made (or left out)."""

    devices: tuple[str, ...] = ()
    os: str | None = None
    arch: str | None = None
    source: str | None = None
    driver: str | None = None
    modules: str | None = None
    cuda: tuple[str, ...] = ()
    cudnn: str | None = None
    nccl: str | None = None
    today: date = date(2026, 11, 30)


@dataclass(frozen=True)
class Found:
    """One complete set."""

    os: str
    arch: str
    source: str
    branch: int
    modules: str
    release: Number
    cuda: tuple[str, ...]
    toolkit_source: str
    cudnn: str | None
    nccl: str | None


def every(ask: Ask) -> Iterator[Found]:
    """All sets that satisfy a question; of cuDNN and NCCL one choice each stands for all."""
    systems = [ask.os] if ask.os else list(SYSTEMS)
    arches = [ask.arch] if ask.arch else ["x86_64", "aarch64"]
    sources = [ask.source] if ask.source else ["nvidia", "debian", "ubuntu"]
    for os, arch, source, branch in product(systems, arches, sources, BRANCHES):
        for modules in ("open", "proprietary"):
            if not drives(ask, branch, modules) or not carried(os, arch, source, branch, modules):
                continue
            for cuda in choices(ask):
                for origin in origins(os, arch, source, cuda):
                    found = Found(
                        os, arch, source, branch, modules, release(ask, branch), cuda, origin, None, None
                    )
                    if runs(ask, found):
                        cudnn, nccl = newest(ask, found, "cudnn"), newest(ask, found, "nccl")
                        if cudnn is not False and nccl is not False:
                            yield Found(
                                os,
                                arch,
                                source,
                                branch,
                                modules,
                                found.release,
                                cuda,
                                origin,
                                cudnn or None,
                                nccl or None,
                            )


@cache
def carried(os: str, arch: str, source: str, branch: int, modules: str) -> bool:
    """The source has the branch for the place, with packages of that flavour."""
    place, row = SYSTEMS[os], BRANCHES[branch]
    if modules not in row["modules"] or (arch == "aarch64" and not row["aarch64"]):
        return False
    if source == "nvidia":
        last = place["branch_last"] or 10**6
        if arch not in place["arches"] or not place["branch_first"] <= branch <= last or row["type"] == "DEV":
            return False
    elif not any(
        a["source"] == source and a["os"] == os and branch in a["branches"] and arch in a["arches"]
        for a in PACKAGES["archives"]
    ):
        return False
    return any(
        p["source"] == source
        and place["family"] in p["family"]
        and p["modules"] == modules
        and p["first"] <= branch <= (p["last"] or branch)
        and os in p.get("os", [os])
        and p.get("manager", place["packages"]) == place["packages"]
        for p in PACKAGES["drivers"]
    )


def drives(ask: Ask, branch: int, modules: str) -> bool:
    """The branch exists on the day, is the one asked for, and drives every card."""
    row = BRANCHES[branch]
    if row.get("first_date", "") > ask.today.isoformat():
        return False
    if ask.driver and num(ask.driver)[0] != branch:
        return False
    if ask.modules and ask.modules != modules:
        return False
    for card in (CARDS[d] for d in ask.devices):
        late = [f for f in card.first if f[0] == branch and len(f) > 1]
        if branch < card.first[0][0] or branch > (card.last or 10**6) or modules not in card.modules:
            return False
        if late and release(ask, branch) < late[0]:
            return False
    return True


def release(ask: Ask, branch: int) -> Number:
    """The release that will be there: the one asked for, or the newest of the branch."""
    if ask.driver and "." in ask.driver and num(ask.driver)[0] == branch:
        return num(ask.driver)
    newest_ = BRANCHES[branch]["newest"]
    return num(newest_) if newest_ else (branch, *ENDLESS)


def choices(ask: Ask) -> list[tuple[str, ...]]:
    return [ask.cuda] if ask.cuda else [(), *((f"{a}.{b}",) for a, b in MINORS)]


def origins(os: str, arch: str, source: str, cuda: tuple[str, ...]) -> list[str]:
    """Where toolkits can come from; none at all where no repository has them."""
    if not cuda:
        return [""]
    place, found = SYSTEMS[os], []
    own = [r for r in PACKAGES["debian_libraries"] if r["os"] == os]
    if source == "debian" and own and all(num(v)[:2] == num(own[0]["cuda"]) for v in cuda):
        found.append("debian")
    last = num(place["cuda_last"]) if place["cuda_last"] else ENDLESS
    if arch in place["arches"] and all(num(place["cuda_first"]) <= num(v)[:2] <= last for v in cuda):
        found.append("nvidia")
    return found


@cache
def first_wish(version: str) -> Number | None:
    """The driver that the first release of a toolkit asks for, of those that ask for any."""
    parts = num(version)
    wishes = {
        num(t["version"]): num(t["min"])
        for t in CUDA["toolkits"]
        if t["min"] and not t.get("preview") and num(t["version"])[: len(parts)] == parts
    }
    return wishes[min(wishes)] if wishes else None


def compatibility(ask: Ask, found: Found, version: str) -> int | None:
    """0 by itself, 1 by minor version, 2 by forward packages, None not at all."""
    row, wanted = BRANCHES[found.branch], first_wish(version)
    if num(version)[:2] <= num(row["max_cuda"]) and (wanted is None or found.release >= wanted):
        return 0
    for rule in sorted(CUDA["minor_version"], key=lambda r: num(r["first"]), reverse=True):
        last = num(rule["last"]) if "last" in rule else ENDLESS
        if rule["major"] == num(version)[0] and num(rule["first"]) <= num(version)[:2] <= last:
            if found.release >= num(rule["min"]):
                return 1
            break
    forward = CUDA["forward"]
    center = all(CARDS[d].segment in forward["segments"] for d in ask.devices)
    return (
        2
        if center and row["type"] in forward["base_types"] and found.branch >= forward["first_base"]
        else None
    )


def runs(ask: Ask, found: Found) -> bool:
    """The toolkits run on the driver and build for every card."""
    for version in found.cuda:
        if compatibility(ask, found, version) is None:
            return False
    for card in (CARDS[d] for d in ask.devices):
        if card.cc is None:
            if found.cuda:
                return False
            continue
        row = CAPABILITIES[card.cc]
        last = num(row["last_cuda"]) if row["last_cuda"] else ENDLESS
        if any(not num(row["first_cuda"]) <= num(v)[:2] <= last for v in found.cuda):
            return False
    return True


def newest(ask: Ask, found: Found, library: str) -> str | bool:
    """The newest release of a library that fits; "" where none does, False where one was asked for."""
    wanted = getattr(ask, library)
    fits = [v for v in held(found, library) if not wanted or num(v)[: len(num(wanted))] == num(wanted)]
    if library == "cudnn":
        fits = [v for v in fits if cudnn_fits(ask, found, v)]
    if fits:
        return max(fits, key=num)
    return False if wanted else ""


def held(found: Found, library: str) -> list[str]:
    if not found.cuda:
        return []
    if found.toolkit_source == "debian":
        own = next(r for r in PACKAGES["debian_libraries"] if r["os"] == found.os)
        return [own[library]] if own[library] else []
    return list((CUDNN if library == "cudnn" else NCCL)["releases"].get(num(found.cuda[0])[0], []))


def cudnn_fits(ask: Ask, found: Found, version: str) -> bool:
    for row in CUDNN["ranges"]:
        last = num(row["last"]) if row["last"] else ENDLESS
        if not num(row["first"]) <= num(version)[:2] <= last:
            continue
        toolkit = num(found.cuda[0])
        if toolkit[0] not in row["cuda"]:
            return False
        if toolkit[0] == 11 and toolkit[:2] < num(row.get("cuda11_first", "0")):
            return False
        for card in (CARDS[d] for d in ask.devices):
            special = [r for r in CUDNN["capabilities"] if r["cc"] == card.cc]
            if special:
                if num(version) < num(special[0]["first"]):
                    return False
            elif card.cc and not num(row["cc_first"]) <= num(card.cc) <= (
                num(row["cc_last"]) if row["cc_last"] else ENDLESS
            ):
                return False
        return True
    return False


def rank(ask: Ask, found: Found) -> tuple[object, ...]:
    """The documented order of preference, worked out again."""
    row, place = BRANCHES[found.branch], SYSTEMS[found.os]
    alive = not row.get("ended") and (not row["eol"] or ask.today <= month_end(row["eol"]))
    for archive in PACKAGES["archives"]:
        if (archive["source"], archive["os"]) == (found.source, found.os) and found.branch in archive[
            "maintained"
        ]:
            alive = alive or ask.today <= month_end(place["supported"])
    fits = [compatibility(ask, found, v) or 0 for v in found.cuda]
    return (
        not ask.source and found.source != "nvidia",
        not found.cuda,
        not alive,
        any(
            names.get("unbuilt") and names["modules"] == found.modules and found.os in names.get("os", [])
            for names in PACKAGES["drivers"]
            if names["source"] == found.source and names["first"] <= found.branch <= (names["last"] or 999)
        ),
        max(fits, default=0),
        found.source == "debian" and found.toolkit_source == "nvidia",
        ["LTS", "PB", "NFB", "DEV"].index(row["type"]),
        -found.branch,
        found.modules != "open",
        [-part for part in num(found.cuda[0])] if found.cuda else [],
    )


def month_end(text: str) -> date:
    year, month = (int(part) for part in text.split("-"))
    return date(year, month, calendar.monthrange(year, month)[1])
