"""/etc/fstab with our mounts: one line each, by UUID; every other line stays byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.mounts import fstab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .data_disks_model import DataMount

PATH = "/etc/fstab"
_REPLACED = "# replaced by gpu-provision: "


def render(text: str, mounts: Sequence[DataMount]) -> str:
    """The file's text. The first line of a mount point becomes ours, others are turned into comments."""
    found = fstab(text)
    assert isinstance(found, tuple), "the planner refuses a file that cannot be read"
    lines = text.splitlines()
    for mount in mounts:
        ours = [entry.line for entry in found if entry.target.rstrip("/") == mount.path]
        for number in ours[1:]:
            lines[number - 1] = _REPLACED + lines[number - 1]
        if not ours:
            lines.append(mount.fstab_line)
        elif lines[ours[0] - 1].split() != mount.fstab_line.split():
            lines[ours[0] - 1] = mount.fstab_line
    same = lines == text.splitlines()
    return text if same else "".join(f"{line}\n" for line in lines)
