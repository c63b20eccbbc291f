"""What going back to a snapshot changes, in words. The host's own side judges again before it acts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .model import Change

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ..facts import Facts
    from ..facts.snapshots import Kept


def changes(kept: Kept, facts: Facts, brought: Collection[str]) -> tuple[Change, ...]:
    """Packages, holds and files that a way back moves; `brought` are the packages that came by us."""
    return (*_packages(kept, facts, brought), *_holds(kept, facts, brought), *_files(kept, facts))


def others(kept: Kept, facts: Facts, brought: Collection[str]) -> tuple[str, ...]:
    """Packages that changed since and are not ours to move."""
    now = _versions(facts)
    names = sorted({*kept.packages, *now} - kept.debs - set(brought))
    return tuple(
        f"{name} ({kept.packages.get(name, 'not there')} then, {now.get(name, 'not there')} now)"
        for name in names
        if kept.packages.get(name) != now.get(name)
    )


def between(old: Kept, new: Kept) -> tuple[str, ...]:
    """What differs between two snapshots of one host, a line each."""
    told = []
    for what, then, now in (
        ("package", old.packages, new.packages),
        ("file", {**old.beside, **old.files}, {**new.beside, **new.files}),
    ):
        for name in sorted({*then, *now}):
            was, is_ = then.get(name, ""), now.get(name, "")
            if was != is_:
                shown = f"{was or 'not there'} -> {is_ or 'not there'}"
                told.append(f"{what} {name}: {shown if what == 'package' else _kind(was, is_)}")
    told += [f"held: {name}" for name in sorted(new.holds - old.holds)]
    told += [f"held no more: {name}" for name in sorted(old.holds - new.holds)]
    told += [f"module: {line}" for line in sorted(set(new.modules) - set(old.modules))]
    told += [f"module no more: {line}" for line in sorted(set(old.modules) - set(new.modules))]
    if old.settings is not None and new.settings is not None:
        told += [f"GPU setting: {line}" for line in sorted(set(new.settings) - set(old.settings))]
    return tuple(told)


def _kind(was: str, is_: str) -> str:
    return "new" if not was else "gone" if not is_ else "changed"


def _versions(facts: Facts) -> dict[str, str]:
    packages = facts.packages
    found = {} if isinstance(packages, Unknown) else packages.installed
    return {name: package.version for name, package in found.items()}


def _packages(kept: Kept, facts: Facts, brought: Collection[str]) -> Iterator[Change]:
    now = _versions(facts)
    for name in sorted(kept.debs):
        then = kept.packages[name]
        if name not in now:
            yield Change(f"install {name} {then}")
        elif now[name] != then:
            yield Change(f"move {name} from {now[name]} to {then}")
    for name in sorted(set(brought) & set(now) - set(kept.packages)):
        yield Change(f"remove {name} {now[name]}")


def _holds(kept: Kept, facts: Facts, brought: Collection[str]) -> Iterator[Change]:
    held = facts.holds
    if isinstance(held, Unknown):
        return
    ours = {*kept.debs, *brought}
    if missing := sorted((kept.holds - held) & ours):
        yield Change(f"hold {', '.join(missing)}")
    if more := sorted((held - kept.holds) & ours & set(kept.packages)):
        yield Change(f"let go of {', '.join(more)}")


def _files(kept: Kept, facts: Facts) -> Iterator[Change]:
    for path, was in sorted(kept.files.items()):
        now = facts.file(path)
        if isinstance(now, Unknown) or was.startswith("-> "):
            continue  # a link, or a file that recordings do not have: the host's own side compares it
        if isinstance(now, Absent):
            if was:
                yield Change(f"write {path}")
        elif not was:
            yield Change(f"remove {path}")
        elif hashlib.sha256(now.encode()).hexdigest() != was:
            yield Change(f"put {path} back")
