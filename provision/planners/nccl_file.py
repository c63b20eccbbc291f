"""/etc/nccl.conf: our settings in a marked block, everything else in it kept as it is.

NCCL takes the first line that names a variable (it never overwrites a set one), so our block comes
first. The format is that of `setEnvFile` in NVIDIA/nccl src/misc/param.cc: KEY=VALUE without blanks
around, `#` for comments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/etc/nccl.conf"
_MARK = "# BEGIN gpu-provision"
_BEGIN = f"{_MARK} (role nccl), computed for this host; lines outside this block are kept"
_END = "# END gpu-provision"
_REPLACED = "# replaced by gpu-provision: "


def foreign(text: str) -> tuple[str, ...]:
    """The lines that are not ours.

    Where one of the marks is gone, nobody can tell where our lines end: then all of them count as the
    user's, and only what is left of the marks is dropped.
    """
    kept: list[str] = []
    block: list[str] | None = None
    for line in (raw.rstrip() for raw in text.splitlines()):
        if line.startswith(_MARK):
            kept += block or ()
            block = []
        elif line.startswith(_END):
            block = None
        else:
            (kept if block is None else block).append(line)
    kept += block or ()
    while kept and not kept[0]:
        del kept[0]
    while kept and not kept[-1]:
        del kept[-1]
    return tuple(kept)


def settings(lines: tuple[str, ...] | list[str]) -> dict[str, str]:
    """KEY=VALUE of some lines as NCCL reads them: the first of two counts."""
    found: dict[str, str] = {}
    for line in lines:
        key, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(key.strip(), value)
    return found


def effective(text: str) -> dict[str, str]:
    """What NCCL gets from a whole file."""
    return settings(text.splitlines())


def render(ours: Mapping[str, str], kept: tuple[str, ...]) -> str:
    """The file's text. A kept line that gives one of our variables another value is turned into a comment."""
    lines = [_BEGIN, *(f"{key}={value}" for key, value in ours.items()), _END]
    for line in kept:
        key, sign, value = line.partition("=")
        taken = sign and not line.startswith("#") and key.strip() in ours and ours[key.strip()] != value
        lines.append(_REPLACED + line if taken else line)
    return "\n".join(lines) + "\n"
