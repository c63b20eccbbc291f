"""Package files that some host has fetched, shared with all hosts of its release by hard links.

A host has them in its own archive folder, under its own lock: two hosts installing at once never wait for each other.
"""

from __future__ import annotations

import os
from pathlib import Path

ARCHIVES = Path("var/cache/apt/archives")


def lend(pool: Path, root_layer: Path) -> None:
    """Links every known package file into a new host's archive folder (`root_layer`: the host's own overlay layer)."""
    pool.mkdir(parents=True, exist_ok=True)
    target = root_layer / ARCHIVES
    target.mkdir(parents=True, exist_ok=True)
    for package in pool.glob("*.deb"):
        try:
            os.link(package, target / package.name)
        except FileExistsError:
            continue


def harvest(pool: Path, root_layer: Path) -> None:
    """Takes over what a host has fetched. apt moves a file here only when it is whole and its hash is right."""
    pool.mkdir(parents=True, exist_ok=True)
    for package in (root_layer / ARCHIVES).glob("*.deb"):
        kept = pool / package.name
        try:
            if package.is_file() and not package.is_symlink() and not kept.exists():
                os.link(package, kept)
        except (FileExistsError, FileNotFoundError):
            continue
