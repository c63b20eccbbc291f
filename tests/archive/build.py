"""Packages and signed repositories on disk, in the layout of NVIDIA's and Ubuntu's servers.

dpkg-deb, apt-ftparchive and gpg make them. Package files are kept between runs, below a digest of what makes
them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from provision.lab.shell import lock

from .contents import Tree, fill
from .packages import packages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .packages import Package

CUDA = "compute/cuda/repos/{}/x86_64"
TOOLKIT = "libnvidia-container/stable/deb/amd64"
UBUNTU = "ubuntu/dists/noble"
KEY_FILE = "test-archive.asc"
# Where Ubuntu has what the archive holds: kernels, the driver, its fabric manager.
COMPONENTS = ("main", "restricted", "multiverse")
# Release files say who made them; a pin can name that, as NVIDIA's own pin file does.
LABELS = {"ubuntu": "Ubuntu", "libnvidia-container": "NVIDIA CORPORATION"}


class Builder:
    """Builds below `root`, to be shown over HTTP. `key` is the signing key's public half, armored."""

    def __init__(self, root: Path, scratch: Path, kept: Path | None = None) -> None:
        self.root, self.home = root, scratch / "gnupg"
        self.debs = kept / _digest() if kept else scratch / "debs"
        for folder in (root, self.debs, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        self.key = self._make_key()

    def everything(self) -> None:
        """Every repository of the data files. Two test runs at once build each package once."""
        wanted = packages()
        with lock(self.debs / "lock"), ThreadPoolExecutor(os.cpu_count()) as pool:
            built = list(pool.map(self.deb, wanted))
        places: dict[str, list[Path]] = {}
        for package, deb in zip(wanted, built, strict=True):
            for name in package.repositories:
                places.setdefault(name, []).append(deb)
        for name, debs in places.items():
            self.repository(name, debs)
        (self.root / KEY_FILE).write_text(self.key)

    def deb(self, package: Package) -> Path:
        """One package file, kept. Uncompressed: they are small, and this is what takes time."""
        target = self.debs / "_".join(package.repositories) / package.filename
        if target.exists():
            return target
        target.parent.mkdir(exist_ok=True)
        with TemporaryDirectory() as scratch:
            root = Path(scratch)
            root.chmod(0o755)
            tree = Tree(root)
            fill(tree, package)
            self._control(tree, package)
            half = target.with_suffix(".half")
            _run("dpkg-deb", "--root-owner-group", "-Znone", "-b", scratch, half)
            half.rename(target)
        return target

    def _control(self, tree: Tree, package: Package) -> None:
        fields = {"Package": package.name, "Version": package.version, "Architecture": package.arch,
                  "Maintainer": "cudatools <cudatools@example>", "Section": "devel", **package.fields,
                  "Description": f"{package.name}, a small stand-in for tests"}  # fmt: skip
        tree.put("DEBIAN/control", "".join(f"{name}: {value}\n" for name, value in fields.items()))
        if tree.conffiles:
            tree.put("DEBIAN/conffiles", "".join(f"{path}\n" for path in tree.conffiles))
        for name, when, parts in (("postinst", "configure", tree.postinst), ("prerm", "", tree.prerm)):
            body = "\n".join(part for part in parts if part)
            if body:
                guard = f'[ "$1" = {when} ] || exit 0\n' if when else ""
                tree.put(f"DEBIAN/{name}", f"#!/bin/sh\nset -e\n{guard}{body}\n", 0o755)

    def repository(self, name: str, debs: Iterable[Path]) -> Path:
        """A signed repository of these packages. NVIDIA's are flat; Ubuntu's has a pool and a suite."""
        folder = self._folder(name)
        pool = self.root / "ubuntu/pool" if name == "ubuntu" else folder
        for path in (folder, pool):
            path.mkdir(parents=True, exist_ok=True)
        for deb in debs:
            (pool / deb.name).unlink(missing_ok=True)
            os.link(deb, pool / deb.name)
        self.index(name)
        return folder

    def index(self, name: str) -> None:
        """Write a repository's index and sign it, again after packages came or went."""
        folder = self._folder(name)
        if name == "ubuntu":
            entries = _run("apt-ftparchive", "packages", "pool", cwd=self.root / "ubuntu").split("\n\n")
            for component in COMPONENTS:
                index = folder / component / "binary-amd64"
                index.mkdir(parents=True, exist_ok=True)
                own = [entry.strip() for entry in entries if entry.strip() and _component(entry) == component]
                (index / "Packages").write_text("".join(f"{entry}\n\n" for entry in own))
            fields = ("Suite=noble", "Codename=noble", f"Components={' '.join(COMPONENTS)}",
                      "Architectures=amd64")  # fmt: skip
            more = [word for field in fields for word in ("-o", f"APT::FTPArchive::Release::{field}")]
        else:
            (folder / "Packages").write_text(_run("apt-ftparchive", "packages", ".", cwd=folder))
            more = []
        for stale in ("Release", "InRelease", "Release.gpg"):
            (folder / stale).unlink(missing_ok=True)
        label = LABELS.get(name, "NVIDIA CUDA")
        said = [
            "-o",
            f"APT::FTPArchive::Release::Origin={label.split()[0]}",
            "-o",
            f"APT::FTPArchive::Release::Label={label}",
        ]
        (folder / "Release").write_text(_run("apt-ftparchive", *said, *more, "release", ".", cwd=folder))
        self._gpg("--clearsign", "-o", folder / "InRelease", folder / "Release")

    def _folder(self, name: str) -> Path:
        path = {"ubuntu": UBUNTU, "libnvidia-container": TOOLKIT}.get(name, CUDA.format(name))
        return self.root / path

    def _make_key(self) -> str:
        self._gpg(
            "--passphrase",
            "",
            "--quick-generate-key",
            "test archive <nobody@example>",
            "rsa2048",
            "sign",
            "never",
        )
        return self._gpg("--armor", "--export")

    def _gpg(self, *words: object) -> str:
        return _run("gpg", "--homedir", self.home, "--batch", "--quiet", "--yes", *words)

    def close(self) -> None:
        """End gpg's agent, which would outlive the test."""
        _run("gpgconf", "--homedir", self.home, "--kill", "all")


def _component(entry: str) -> str:
    """The component of an entry of Packages, by the package's name."""
    name = entry.strip().partition("\n")[0].removeprefix("Package: ")
    if name.startswith(("linux-image-", "linux-headers-")):
        return "main"
    return "multiverse" if name.startswith("nvidia-fabricmanager") else "restricted"


def _run(*words: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def _digest() -> str:
    """Of all that decides what is in a package file."""
    files = sorted(
        path for path in Path(__file__).parent.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    )
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]
