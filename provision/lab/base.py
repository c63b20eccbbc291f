"""The base root of a release: built once, kept, and built anew when its recipe changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from . import network, sources
from .needs import KEYRING
from .shell import lock, run
from .sources import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .place import Place

# A rented Debian server: Debian's `important` set, its own kernel with headers (so that DKMS has something to
# build for), sshd, sudo and Python. Nothing here is of a GPU.
PACKAGES = (
    "linux-image-amd64", "linux-headers-amd64", "zstd", "openssh-server", "python3", "python3-apt", "sudo",
    "systemd-sysv", "dbus", "libpam-systemd", "iproute2", "pciutils", "kmod", "ca-certificates", "curl",
    "gnupg", "ccache",
)  # fmt: skip

# Where hosts have the compiler cache that they share. It makes the second host's build of a kernel module
# cheap: DKMS really builds there, and gets the object files of equal inputs from the cache.
COMPILER_CACHE = "/var/cache/ccache"
COMPILER = Path(__file__).with_name("compiler.sh")

# Runs on the new root ($1), outside of it. What differs from host to host is taken out: the lab makes it per
# host. The compiler links come before /usr/bin in every PATH that Debian sets (login, sudo, services, dpkg).
CUSTOMIZE = f"""set -eu
root=$1
rm -f "$root"/etc/ssh/ssh_host_*
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root/etc/apt/apt.conf.d/99mmdebstrap"
rm -f "$root"/var/cache/apt/archives/*.deb
install -m 755 "$2" "$root/usr/local/lib/lab-compiler"
for compiler in "$root"/usr/lib/ccache/*; do
    ln -s ../lib/lab-compiler "$root/usr/local/bin/${{compiler##*/}}"
done
mkdir "$root{COMPILER_CACHE}"
# apt gives dpkg a PATH of its own (DPkg::Path), without /usr/local.
echo 'DPkg::Path "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";' > \
"$root/etc/apt/apt.conf.d/50lab-path"
cat > "$root/etc/ccache.conf" <<'END'
cache_dir = {COMPILER_CACHE}
max_size = 3G
hash_dir = false
compiler_check = %compiler% -v
sloppiness = time_macros,include_file_mtime,include_file_ctime
END
"""


# Everything in a build ends with the process that builds and leaves no mount: it has process and mount tables
# of its own.
ALONE = (
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip


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
    """Removes base roots of old recipes that no host stands on."""
    newest = [max(place.bases.glob(f"{release}-*"), key=_age, default=None) for release in RELEASES]
    keep = {path.name for path in newest if path} | set(in_use)
    for path in place.bases.glob("[!.]*-*"):
        if path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)


def _age(path: Path) -> float:
    return path.stat().st_mtime


def _recipe(release: str) -> dict[str, object]:
    archive = sources.for_release(release)
    return {
        "release": release,
        "packages": PACKAGES,
        "sources": [source.line() for source in archive],
        "apt": sources.apt_settings(),
        "customize": CUSTOMIZE,
        "compiler": COMPILER.read_text(),
    }


def _build(
    place: Place, release: str, recipe: dict[str, object], root: Path, say: Callable[[str], None]
) -> Path:
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
            *ALONE,
            "env", f"TMPDIR={work}",
            "mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=important",
            f"--include={','.join(PACKAGES)}", "--skip=cleanup/apt",
            f"--aptopt={settings}",
            f"--customize-hook=sh '{work / 'customize'}' \"$1\" '{COMPILER}'",
            release, build, *(source.line(KEYRING) for source in archive),
        ]
    )  # fmt: skip
    _reach(build, release, archive, str(recipe["apt"]))
    # Fresh package lists and apt's own caches of them: hosts start with both, so their first update is quick.
    (build / "etc/resolv.conf").write_text(network.name_servers())
    run([*ALONE, "chroot", build, "sh", "-c", "apt-get -q update && apt-cache gencaches"])
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
            f"Types: deb\nURIs: {source.uri}\nSuites: {source.suite}\n"
            f"Components: {' '.join(sources.COMPONENTS)}\nSigned-By: {KEYRING}\n"
            for source in archive
        ]
        (etc / "sources.list.d/debian.sources").write_text("\n".join(stanzas))
    bundle = sources.certificates()
    if bundle and any(source.uri.startswith("https") for source in archive):
        shutil.copyfile(bundle, etc / "machine-certificates.pem")
        settings += 'Acquire::https::CAInfo "/etc/apt/machine-certificates.pem";\n'
    if settings:
        (etc / "apt.conf.d/90machine").write_text(settings)
