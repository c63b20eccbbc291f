"""Package files that some host has fetched, shared with all hosts of its release by hard links.

A host has them in its own archive folder, under its own lock: two hosts that install never wait for another.
"""

from __future__ import annotations

import os
from pathlib import Path

ARCHIVES = Path("var/cache/apt/archives")


def lend(pool: Path, layer: Path) -> None:
    """Links every known package file into a new host's archive folder, in the host's own overlay layer."""
    pool.mkdir(parents=True, exist_ok=True)
    target = layer / ARCHIVES
    target.mkdir(parents=True, exist_ok=True)
    for package in pool.glob("*.deb"):
        try:
            os.link(package, target / package.name)
        except FileExistsError:
            continue


def harvest(pool: Path, layer: Path) -> None:
    """Takes over what a host has fetched. apt moves a file there only when whole and of the right hash."""
    pool.mkdir(parents=True, exist_ok=True)
    for package in (layer / ARCHIVES).glob("*.deb"):
        kept = pool / package.name
        try:
            if package.is_file() and not package.is_symlink() and not kept.exists():
                os.link(package, kept)
        except (FileExistsError, FileNotFoundError):
            continue
