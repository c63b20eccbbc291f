"""Whether this machine's KVM really runs a guest. Its device file does not say: where virtualisation is
nested, it may open while guests fail or hang.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from ..shell import plain_environment

if TYPE_CHECKING:
    from pathlib import Path

    from ..place import Place

PROGRAM = "qemu-system-x86_64"
DEVICE = "/dev/kvm"
KVM, EMULATION = "kvm", "tcg,thread=multi"
LIMIT = 20.0  # seconds; with KVM the trial takes two


def best(place: Place, kernel: Path) -> str:
    """KVM where a trial boot of `kernel` comes to its end, software emulation elsewhere. Tried once until
    this machine restarts.
    """
    known = place.run / "accelerator"
    if not known.exists():
        place.run.mkdir(parents=True, exist_ok=True)
        half = known.with_name(f".accelerator.{os.getpid()}")
        half.write_text(KVM if _works(kernel) else EMULATION)
        half.replace(known)
    return known.read_text()


def _works(kernel: Path) -> bool:
    """A kernel without a root gives up and, told so, restarts; QEMU then ends by itself."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False
    trial = [
        PROGRAM, "-machine", "q35", "-accel", KVM, "-cpu", "host", "-smp", "2", "-m", "512", "-nodefaults",
        "-no-user-config", "-display", "none", "-no-reboot", "-kernel", str(kernel), "-append", "panic=-1",
    ]  # fmt: skip
    try:
        return not subprocess.run(
            trial,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=LIMIT,
            env=plain_environment(),
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return False
