"""Installed kernels, the running one, and the nvidia module: on disk, in DKMS and loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import flag_of, output, quote, rows, text_of, words
from .known import ABSENT, Absent, Unknown
from .record import record
from .versions import driver_version

if TYPE_CHECKING:
    from ..recording.model import Answer


@record
class InstalledKernel:
    """One kernel of /lib/modules.

    `nvidia_module` is the version of the module built for it (`unknown` where it names none), None
    where there is none; `nvidia_open` its flavour, `nvidia_more` further copies of it.
    """

    release: str
    image: bool
    headers: bool
    nvidia_module: str | None
    initrd: bool | None = None
    nvidia_open: bool | None = None
    nvidia_signer: str | None = None
    nvidia_path: str | None = None
    nvidia_more: tuple[str, ...] = ()


@record
class LoadedDriver:
    """The nvidia module in the running kernel. `open` is the flavour (open or proprietary modules)."""

    version: str
    open: bool | Unknown


@record
class ModInfo:
    """The nvidia module on disk for the running kernel. `signer` is empty where it is not signed."""

    version: str
    license: str
    filename: str
    signer: str

    @property
    def open(self) -> bool:
        """The open modules are `Dual MIT/GPL`, the proprietary ones `NVIDIA`."""
        return "GPL" in self.license


@record
class DkmsModule:
    """One line of `dkms status`. `kernel` is None where the module is only added."""

    name: str
    version: str
    kernel: str | None
    state: str
    note: str

    @property
    def is_nvidia(self) -> bool:
        return self.name == "nvidia" or self.name.startswith("nvidia-")


def kernels(answer: Answer) -> tuple[InstalledKernel, ...] | Unknown:
    found = rows(answer)
    if isinstance(found, Unknown):
        return found
    result = []
    for row in found:
        release, image, headers = text_of(row, "release"), flag_of(row, "image"), flag_of(row, "headers")
        if release is None or image is None or headers is None:
            return Unknown(f"kernels: an entry not whole: {quote(str(row))}", answer.item)
        licence, more = text_of(row, "nvidia_license"), row.get("nvidia_more")
        result.append(
            InstalledKernel(
                release,
                image,
                headers,
                text_of(row, "nvidia_module"),
                flag_of(row, "initrd"),
                "GPL" in licence if licence else None,
                text_of(row, "nvidia_signer"),
                text_of(row, "nvidia_path"),
                tuple(str(path) for path in more) if isinstance(more, list) else (),
            )
        )
    return tuple(result)


def modules(answer: Answer) -> frozenset[str] | Unknown:
    """Names of the loaded modules, with underscores, from `lsmod` or /proc/modules."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    names = set()
    for line in text.splitlines():
        if not line.strip() or re.match(r"Module\s+Size\s", line):
            continue
        found = re.match(r"([\w-]+)\s+\d+\s+-?\d+(\s|$)", line)
        if not found:
            return Unknown(f"lsmod: unexpected line: {quote(line)}", answer.item)
        names.add(found[1].replace("-", "_"))
    if not names and not text.startswith("Module"):
        return Unknown("lsmod: nothing was printed", answer.item)
    return frozenset(names)


def loaded_driver(
    proc: Answer, sys: Answer, loaded: frozenset[str] | Unknown
) -> LoadedDriver | Absent | Unknown:
    """The loaded nvidia module, from /proc/driver/nvidia/version and /sys/module/nvidia/version.

    Either file exists exactly while the module is loaded, so one that is known not to be there
    settles it, unless the list of modules says otherwise. Only the first tells the flavour: the module
    on disk may have been replaced since, and both flavours carry the same version.
    """
    text = output(proc)
    if not isinstance(text, Unknown):
        line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
        version = driver_version(line)
        if version is None:
            return Unknown(f"/proc/driver/nvidia/version: {quote(text) or 'it is empty'}", proc.item)
        return LoadedDriver(version, _flavour(line, proc.item))
    from_sys = output(sys)
    if not isinstance(from_sys, Unknown):
        version = driver_version(from_sys)
        if version is None:
            return Unknown(f"/sys/module/nvidia/version names no version: {quote(from_sys)}", sys.item)
        return LoadedDriver(version, Unknown(f"the flavour of the loaded module: {text.reason}", proc.item))
    listed = None if isinstance(loaded, Unknown) else "nvidia" in loaded
    if listed is False or (listed is None and (proc.missing or sys.missing)):
        return ABSENT
    if listed:
        return Unknown(f"nvidia is loaded, its version was not read: {text.reason}", proc.item)
    return text


def _flavour(line: str, item: str) -> bool | Unknown:
    """Whether the open modules are loaded: `Open Kernel Module for x86_64`, or `x86_64 Kernel Module`."""
    if re.search(r"\bNVIDIA UNIX Open Kernel Module for \w+\s", line):
        return True
    if re.search(r"\bNVIDIA UNIX \w+ Kernel Module\s", line):
        return False
    return Unknown(f"the flavour of the loaded module: {quote(line)}", item)


def modinfo(answer: Answer) -> ModInfo | Absent | Unknown:
    """`modinfo nvidia`; Absent where no such module is there for the running kernel."""
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    if answer.rc not in (0, None):
        said = words(answer)
        if "not found" in said:
            return ABSENT
        return Unknown(f"modinfo ended with status {answer.rc}: {quote(said)}", answer.item)
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, sign, value = line.partition(":")
        if sign:
            values.setdefault(key.strip(), value.strip())
    version = driver_version(values.get("version", ""))
    if version is None or "license" not in values:
        return Unknown(f"modinfo: {quote(text) or 'nothing was printed'}", answer.item)
    return ModInfo(version, values["license"], values.get("filename", ""), values.get("signer", ""))


# `nvidia/580.95.05, 6.8.0-58-generic, x86_64: installed (note)`; before DKMS 3 a comma stood for the slash.
_DKMS = re.compile(
    r"(?P<name>[^,/\s]+)(?:/|,\s*)(?P<version>[^,:\s]+)(?:,\s*(?P<kernel>[^,\s]+),\s*(?P<arch>[^,:\s]+))?:\s*"
    r"(?P<state>added|built|installed|broken)(?:\s+(?P<note>.*))?"
)


def dkms(answer: Answer) -> tuple[DkmsModule, ...] | Absent | Unknown:
    """`dkms status`; Absent where dkms is not installed."""
    if answer.missing:
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    result = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("Deprecated feature:", "Warning:")):
            continue
        found = _DKMS.fullmatch(line.strip())
        if not found:
            return Unknown(f"dkms status: {quote(line)}", answer.item)
        name, version, kernel, _, state, note = found.groups()
        result.append(DkmsModule(name, version, kernel, state, note or ""))
    return tuple(result)
