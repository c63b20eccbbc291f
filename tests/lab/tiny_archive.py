"""A package archive of a few kilobytes on a lab host's own disk, so that no test needs a network."""

# ruff: noqa: E501

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from provision.transport import ssh

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.lab import LabHost

FOLDER = "srv/archive"


def package(host: LabHost, name: str, version: str = "1.0-1", *, postinst: str = "", **fields: str) -> None:
    """Put one empty package into the archive; `fields` are control fields with `_` for `-`."""
    control = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "Nobody <nobody@example>",
               "Description": "for a test", **{k.replace("_", "-"): v for k, v in fields.items()}}  # fmt: skip
    archive = host.root / FOLDER
    archive.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        debian = Path(scratch) / "DEBIAN"
        debian.mkdir(mode=0o755)
        text = "".join(f"{key}: {value}\n" for key, value in control.items())
        (debian / "control").write_text(text)
        if postinst:
            (debian / "postinst").write_text(f"#!/bin/sh\n{postinst}\n")
            (debian / "postinst").chmod(0o755)
        deb = archive / f"{name}_{version}.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-b", scratch, deb], check=True, stdout=subprocess.DEVNULL
        )
    content = deb.read_bytes()
    entry = f"{text}Filename: ./{deb.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n\n"
    with (archive / "Packages").open("a") as index:
        index.write(entry)


def only_source(host: LabHost, others: Iterable[str] = ()) -> None:
    """Make it the host's one source, beside lines of `others`."""
    lines = [f"deb [trusted=yes] file:/{FOLDER} ./", *others]
    (host.root / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")


def fetch(host: LabHost) -> None:
    """`apt-get update` on the host."""
    argv = [*ssh.fresh_args(host.target()), "apt-get update -q"]
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
