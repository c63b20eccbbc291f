"""Kernel modules that take NVIDIA's GPUs before NVIDIA's own driver, and who keeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown

if TYPE_CHECKING:
    from ..facts import Facts

MODPROBE = "/etc/modprobe.d/gpu-provision.conf"
RIVALS = ("nouveau", "nova_core")
MODPROBE_TEXT = """\
# Written by gpu-provision (role nvidia_driver): these would take the GPUs before the NVIDIA driver.
blacklist nouveau
blacklist nova_core
"""
# Where administrators and packages keep such lines (modprobe.d(5)).
_FOLDERS = ("/etc/modprobe.d/*", "/lib/modprobe.d/*nvidia*", "/usr/lib/modprobe.d/*nvidia*")


def is_rival(driver: str | None) -> bool:
    """Whether a kernel driver is one that takes GPUs from NVIDIA's; vfio-pci is a choice, not a rival."""
    return (driver or "").lower().replace("_", "").replace("-", "") in ("nouveau", "novacore")


def kept_out_by(facts: Facts) -> str | None:
    """A file of somebody else's that keeps nouveau out, as packages of drivers bring one; None without one.

    nova_core is of kernels so new that few files name it yet; a card that NVIDIA's driver has is not its.
    """
    for folder in _FOLDERS:
        files = facts.files(folder)
        for path, text in () if isinstance(files, Unknown) else files.items():
            if isinstance(text, str) and any(_keeps_out(line) for line in text.splitlines()):
                return path
    return None


def _keeps_out(line: str) -> bool:
    words = line.split()
    return words[:2] == ["blacklist", "nouveau"] or (
        words[:2] == ["install", "nouveau"] and words[2:3] in (["/bin/false"], ["/bin/true"])
    )
