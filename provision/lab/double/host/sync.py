"""Stand in for programs of the driver's packages for as long as those packages are installed; dpkg calls this
when it has run.

dpkg puts the packages' own files aside (dpkg-divert). Where a file lies aside, the double takes its place;
where none does any more, it leaves. So the programs come and go with their packages, on install, upgrade,
removal and purge.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World

ASIDE = "usr/lib/gpu-double/diverted"
BIN = "/usr/lib/gpu-double/bin"

STANDS_IN = {
    "usr/lib/nvidia/current/nvidia-smi": "nvidia-smi",
    "usr/bin/nvidia-smi": "nvidia-smi",
    "usr/bin/nvidia-persistenced": "nvidia-persistenced",
    "usr/bin/nvidia-ctk": "nvidia-ctk",
    "usr/bin/nvidia-container-runtime": "nvidia-container-runtime",
    "usr/bin/nvidia-container-runtime-hook": "nvidia-container-runtime-hook",
}
"""Where packages put the programs (Debian's nvidia-smi the first, NVIDIA's and Ubuntu's the second) -> what
they are called.
"""


def aside(path: str) -> str:
    """Where dpkg puts a package's own file, relative to the root."""
    return f"{ASIDE}/{path.replace('/', '-')}"


def sync(world: World) -> bool:
    """Put the double in place and take it away as needed -> whether anything changed."""
    changed = False
    for path, name in STANDS_IN.items():
        here, program = world.root / path, f"{BIN}/{name}"
        is_ours = here.is_symlink() and str(here.readlink()) == program
        if (world.root / aside(path)).exists() and not here.exists() and not is_ours:
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(program)
            changed = True
        elif is_ours and not (world.root / aside(path)).exists():
            here.unlink()
            _leave(world, here.parent)
            changed = True
    return changed


def _leave(world: World, directory: Path) -> None:
    """Remove directories that dpkg left behind only because the double's program was still in them."""
    name = f"/{directory.relative_to(world.root)}"
    lists = (world.root / "var/lib/dpkg/info").glob("*.list")
    if any(name in file.read_text().splitlines() for file in lists):
        return
    with contextlib.suppress(OSError):
        directory.rmdir()
        _leave(world, directory.parent)


def after_dpkg(world: World) -> int:
    """dpkg's post-invoke hook. Debian reaches nvidia-smi by an alternative that a trigger sets; where dpkg
    ran that trigger before the double was in place, or still was, have it run once more.
    """
    if not sync(world):
        return 0
    alternative = Path("/etc/alternatives/nvidia--nvidia-smi")
    if (world.root / "usr/lib/nvidia/current/nvidia-smi").exists() == alternative.is_symlink():
        return 0
    status = subprocess.run(
        ["dpkg-query", "-W", "-f=${db:Status-Status}", "nvidia-alternative"],
        capture_output=True,
        text=True,
        check=False,
    )
    if status.stdout == "installed":
        subprocess.run(
            ["dpkg-trigger", "--by-package=nvidia-alternative", "--no-await", "register-nvidia-alternative"],
            check=False,
        )
        return subprocess.run(["dpkg", "--triggers-only", "nvidia-alternative"], check=False).returncode
    return 0
