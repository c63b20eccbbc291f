"""The base root of a release: built once, kept, and built anew when its recipe changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING

from . import sources
from .needs import KEYRING
from .shell import lock, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from .place import Place

RELEASES = ("bookworm", "trixie")

# A rented Debian server: Debian's `important` set, its own kernel with headers (so that DKMS has something to
# build for), sshd, sudo and Python. Nothing here is of a GPU. ccache is the lab's: it makes the second host's
# build of a kernel module cheap, see compilers.py.
PACKAGES = (
    "linux-image-amd64", "linux-headers-amd64", "openssh-server", "python3", "python3-apt", "sudo", "systemd-sysv",
    "dbus", "libpam-systemd", "iproute2", "pciutils", "kmod", "ca-certificates", "curl", "gnupg", "ccache",
)  # fmt: skip

# Runs in the new root ($1), outside of it. What differs from host to host is taken out: the lab makes it per host.
# Base roots are shared by hosts of the same lab, so the archive's address stays as apt knows it here.
CUSTOMIZE = r"""set -eu
root=$1
rm -f "$root"/etc/ssh/ssh_host_* "$root"/etc/hostname "$root"/etc/resolv.conf
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root/etc/apt/apt.conf.d/99mmdebstrap"
rm -f "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin
"""


def ensure(place: Place, release: str, say: Callable[[str], None] = lambda _: None) -> Path:
    """The base root of a release, built first where it is not there in today's recipe (about two minutes).

    The build is atomic: a root that was cut short is never used, and is removed by the next build.
    Raises Usage where the machine knows no Debian archive, Failure where the build fails.
    """
    recipe = _recipe(release)
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
    root = place.bases / f"{release}-{digest}"
    if root.is_dir():
        return root
    place.bases.mkdir(parents=True, exist_ok=True)
    with lock(place.bases / f"{release}.lock", wait=False) as mine:
        if mine:
            return root if root.is_dir() else _build(place, release, recipe, root, say)
    say(f"waiting for another run that is building the Debian {release} base root")
    with lock(place.bases / f"{release}.lock"):
        return root if root.is_dir() else _build(place, release, recipe, root, say)


def forget_old(place: Place, in_use: Iterable[str]) -> None:
    """Removes base roots of old recipes that no host stands on, and what builds that were cut short left."""
    keep = set(in_use) | {path.name for path in (_newest(place, release) for release in RELEASES) if path}
    for path in place.bases.glob("*-*"):
        if path.is_dir() and path.name not in keep and not path.name.startswith("."):
            shutil.rmtree(path, ignore_errors=True)


def _newest(place: Place, release: str) -> Path | None:
    return max(place.bases.glob(f"{release}-*"), key=lambda path: path.stat().st_mtime, default=None)


def _recipe(release: str) -> dict[str, object]:
    archive = sources.for_release(release)
    return {
        "release": release,
        "packages": PACKAGES,
        "sources": [source.line() for source in archive],
        "apt": sources.apt_settings(),
        "customize": CUSTOMIZE,
        "form": 1,
    }


def _build(place: Place, release: str, recipe: dict[str, object], root: Path, say: Callable[[str], None]) -> Path:
    for stale in place.bases.glob(f".{release}-*"):
        shutil.rmtree(stale)
    say(f"building the Debian {release} base root, once; this takes about two minutes")
    work = place.bases / f".{release}-building"
    work.mkdir(mode=0o755)
    (work / "customize").write_text(CUSTOMIZE)
    build = work / "root"
    settings = work / "apt.conf"
    settings.write_text(str(recipe["apt"]))
    archive = sources.for_release(release)
    run(
        [
            # The whole build ends with this process, and leaves no mount: it has its own process and mount tables.
            "setpriv", "--pdeathsig", "KILL",
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=important",
            f"--include={','.join(PACKAGES)}", "--skip=cleanup/apt",
            f"--aptopt={settings}",
            f"--customize-hook=sh '{work / 'customize'}' \"$1\"",
            release, build, *(source.line(KEYRING) for source in archive),
        ]
    )  # fmt: skip
    _reach(build, release, archive, str(recipe["apt"]))
    build.chmod(0o755)
    os.sync()
    build.rename(root)
    shutil.rmtree(work)
    return root


def _reach(root: Path, release: str, archive: list[sources.Source], settings: str) -> None:
    """Writes the host's apt sources in its release's own form, and how this machine reaches the archive."""
    etc = root / "etc/apt"
    (etc / "sources.list").unlink(missing_ok=True)
    if release == "bookworm":
        (etc / "sources.list").write_text("".join(source.line() + "\n" for source in archive))
    else:
        stanzas = [
            f"Types: deb\nURIs: {source.uri}\nSuites: {source.suite}\nComponents: {' '.join(sources.COMPONENTS)}\n"
            f"Signed-By: {KEYRING}\n"
            for source in archive
        ]
        (etc / "sources.list.d/debian.sources").write_text("\n".join(stanzas))
    bundle = sources.certificates()
    if bundle and any(source.uri.startswith("https") for source in archive):
        shutil.copyfile(bundle, etc / "machine-certificates.pem")
        settings += 'Acquire::https::CAInfo "/etc/apt/machine-certificates.pem";\n'
    if settings:
        (etc / "apt.conf.d/90machine").write_text(settings)
