"""What NVIDIA's software left on the host beside packages: device nodes, users of them, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import flag_of, int_of, quote, rows, text_of
from .known import Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer


@record
class DeviceNode:
    """One of /dev/nvidia*. `char_link` tells whether /dev/char has the link that runc looks for."""

    path: str
    major: int
    minor: int
    mode: str
    owner: str
    char_link: bool


@record
class GpuUser:
    """A process that holds one of the device nodes open."""

    pid: int
    program: str
    state: str


@record
class OwnedFile:
    """One file of the driver or its helpers; `package` is None where no package owns it."""

    path: str
    target: str | None
    package: str | None
    is_directory: bool


def device_nodes(answer: Answer) -> tuple[DeviceNode, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path, major, minor = text_of(row, "path"), int_of(row, "major"), int_of(row, "minor")
        link = flag_of(row, "char_link")
        if path is None or major is None or minor is None or link is None:
            return Unknown(f"nvidia.devices: an entry that is not whole: {quote(str(row))}", answer.item)
        mode, owner = text_of(row, "mode") or "", text_of(row, "owner") or ""
        result.append(DeviceNode(path, major, minor, mode, owner, link))
    return tuple(result)


def gpu_users(answer: Answer) -> tuple[GpuUser, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        pid, program = int_of(row, "pid"), text_of(row, "program")
        if pid is None or program is None:
            return Unknown(f"nvidia.processes: an entry that is not whole: {quote(str(row))}", answer.item)
        result.append(GpuUser(pid, program, text_of(row, "state") or ""))
    return tuple(result)


def driver_files(answer: Answer) -> tuple[OwnedFile, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        path = text_of(row, "path")
        if path is None:
            return Unknown(f"nvidia.files: an entry without a path: {quote(str(row))}", answer.item)
        is_directory = row.get("kind") == "directory"
        result.append(OwnedFile(path, text_of(row, "target"), text_of(row, "package"), is_directory))
    return tuple(result)
