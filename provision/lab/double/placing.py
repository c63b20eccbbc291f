"""Putting the double into a host's root before it boots."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .host.main import CONTAINER
from .host.sync import ASIDE, STANDS_IN, aside
from .host.world import MARK
from .machine import build

if TYPE_CHECKING:
    from .spec import GpuSpec

HOST = Path(__file__).parent / "host"
OWN = "usr/lib/gpu-double"
KMOD = ("modprobe", "rmmod", "lsmod")

# A boot calls modprobe a dozen times for modules that are not the driver's; starting Python for each takes
# an emulated processor seconds. The real one goes by the name it is called with.
MODPROBE = f"""#!/bin/sh
# {MARK}: loading and unloading of the driver's modules; all others are the real modprobe's.
case "$*" in *nvidia*) exec /{OWN}/python/modprobe "$@" ;; esac
exec /{OWN}/kmod/modprobe "$@"
"""

# An initial RAM disk has no GPU to stand in for and none of our programs: it gets the real ones, or the host
# would find no module for its own root at the next boot. initramfs-tools(7): these hooks run after the
# packages' own, of which kmod's copied our links.
INITRAMFS_HOOK = f"""#!/bin/sh
# {MARK}
[ "$1" = prereqs ] && exit 0
for name in modprobe rmmod; do ln -sf ../bin/kmod "$DESTDIR/sbin/$name"; done
"""

UNITS = {
    "gpu-double.service": f"""[Unit]
Description=GPU double: PCI devices and driver of GPUs that are not there ({MARK})
DefaultDependencies=no
RequiresMountsFor=/var/lib/gpu-double
Before=basic.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/{OWN}/bin/boot
""",
    "gpu-double-faults.path": f"""[Unit]
Description=GPU double: faults switched on from outside the host ({MARK})
After=gpu-double.service

[Path]
PathChanged=/var/lib/gpu-double/faults.json
""",
    "gpu-double-faults.service": f"""[Unit]
Description=GPU double: show the faults switched on ({MARK})
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/{OWN}/bin/notice-faults
""",
}


def install(root: Path, gpus: GpuSpec, release: str, *, state: Path) -> None:
    """Make a host's root file system, not yet booted, show `gpus`. `state` is a directory outside it, which
    nspawn_binds() binds into the host: the machine's description and the faults switched on lie there.
    """
    state.mkdir(parents=True, exist_ok=True)
    (state / "machine.json").write_text(json.dumps(build(gpus, seed=str(state))))
    own = root / OWN
    shutil.copytree(
        HOST, own / "gpu_double", ignore=shutil.ignore_patterns("__pycache__", "entry.py"), dirs_exist_ok=True
    )
    _program(own / "gpu-double", (HOST / "entry.py").read_text())
    (own / "bin").mkdir(exist_ok=True)
    (root / ASIDE).mkdir(exist_ok=True)
    programs = ("nvidia-smi", "nvidia-persistenced", *CONTAINER, "rmmod", "lsmod")
    for name in (*programs, "dmesg", "after-dpkg", "boot", "notice-faults"):
        _link(own / "bin" / name, "../gpu-double")
    _program(own / "bin/modprobe", MODPROBE)
    _program(root / "etc/initramfs-tools/hooks/gpu-double", INITRAMFS_HOOK)
    _link(own / "python/modprobe", "../gpu-double")
    _link(own / "kmod/modprobe", "/bin/kmod")
    _link(root / "usr/local/sbin/gpu-double", f"/{OWN}/gpu-double")
    (root / "etc/gpu-double").write_text(f"{MARK}: {gpus}\n")
    (root / "var/lib/gpu-double").mkdir(parents=True, exist_ok=True)
    _divert(root, merged=release != "bookworm")
    (root / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/dpkg/dpkg.cfg.d/gpu-double").write_text(f"# {MARK}\npost-invoke=/{OWN}/bin/after-dpkg\n")
    for name, text in UNITS.items():
        (root / "etc/systemd/system" / name).write_text(text)
    for name in ("gpu-double.service", "gpu-double-faults.path"):
        _link(root / "etc/systemd/system/basic.target.wants" / name, f"/etc/systemd/system/{name}")


def nspawn_binds(state: Path) -> list[str]:
    """What systemd-nspawn has to be called with for a host whose root has gone through install()."""
    return [f"--bind={state}:/var/lib/gpu-double"]


def _divert(root: Path, *, merged: bool) -> None:
    """Have dpkg put the packages' files aside, as dpkg-divert(1) records it: from, to, and `:` for a local
    diversion.

    Debian 13 ships kmod and util-linux below /usr; Debian 12 ships them in /sbin and /bin, and dpkg goes by
    those names.
    """
    sbin, bin_ = ("usr/sbin", "usr/bin") if merged else ("sbin", "bin")
    here = {f"{sbin}/{name}": name for name in KMOD} | {f"{bin_}/lsmod": "lsmod"} | {f"{bin_}/dmesg": "dmesg"}
    moves = {path: aside(path) for path in STANDS_IN}
    for path, name in here.items():
        if not (root / path).exists() and not (root / path).is_symlink():
            continue
        moves[path] = f"{ASIDE}/dmesg" if name == "dmesg" else aside(path)
        (root / path).rename(root / moves[path])
        (root / path).symlink_to(f"/{OWN}/bin/{name}")
    listed = root / "var/lib/dpkg/diversions"
    kept = listed.read_text() if listed.exists() else ""
    listed.write_text(kept + "".join(f"/{path}\n/{to}\n:\n" for path, to in moves.items()))


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
