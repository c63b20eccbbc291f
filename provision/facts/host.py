"""What kind of machine answers: distribution, architecture, Python, virtualisation, Secure Boot."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from .answers import output, quote, words
from .known import ABSENT, Absent, Unknown
from .record import record

if TYPE_CHECKING:
    from ..recording.model import Answer

# systemd-detect-virt(1), "Currently known virtualization technologies".
_CONTAINERS = frozenset(
    ("openvz", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "rkt", "wsl", "proot", "pouch")
)
_MACHINES = frozenset(
    (
        "qemu",
        "kvm",
        "amazon",
        "zvm",
        "vmware",
        "microsoft",
        "oracle",
        "powervm",
        "xen",
        "bochs",
        "uml",
        "parallels",
        "bhyve",
        "qnx",
        "acrn",
        "apple",
        "sre",
        "google",
        "vm-other",
    )
)
_RHEL_KIN = frozenset(["rhel", "centos", "rocky", "almalinux", "ol"])
_ARCHITECTURES = frozenset(["x86_64", "aarch64", "ppc64le", "riscv64", "s390x", "armv7l", "i686"])

_FAMILIES = {"debian": {"debian", "ubuntu"}, "rhel": _RHEL_KIN | {"fedora"}, "suse": {"suse", "opensuse"}}


@record
class OsRelease:
    """/etc/os-release.

    `code` joins ID and VERSION_ID (`debian12`, `ubuntu24.04`); of the RHEL kin only the major part.
    """

    id: str
    version_id: str
    code: str
    like: tuple[str, ...]
    pretty: str
    codename: str

    @property
    def family(self) -> str:
        """`debian`, `rhel`, `suse`, or the id itself where it is none of these."""
        for name, kin in _FAMILIES.items():
            if {self.id, *self.like} & kin:
                return name
        return self.id


@record
class Virtualization:
    """`kind` is systemd-detect-virt's word; `none` for bare metal."""

    kind: str

    @property
    def is_container(self) -> bool:
        return self.kind in _CONTAINERS

    @property
    def is_vm(self) -> bool:
        return self.kind in _MACHINES

    @property
    def shares_kernel(self) -> bool:
        """The running kernel is another machine's, so nothing about it can be judged or mended here."""
        return self.is_container


@record
class SecureBoot:
    """State of UEFI Secure Boot; a machine without UEFI has it neither on nor to come."""

    enabled: bool
    says: str


def os_release(answer: Answer) -> OsRelease | Unknown:
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, sign, value = line.strip().partition("=")
        if sign and re.fullmatch(r"[A-Z][A-Z0-9_]*", key):
            values[key] = _unquoted(value)
    name = values.get("ID", "").lower()
    if not re.fullmatch(r"[a-z0-9._-]+", name):
        return Unknown(f"os-release names no ID: {quote(text) or 'it is empty'}", answer.item)
    version = values.get("VERSION_ID", "")
    like = tuple(values.get("ID_LIKE", "").lower().split())
    short = version.split(".")[0] if name in _RHEL_KIN or "rhel" in like else version
    pretty, codename = values.get("PRETTY_NAME", name), values.get("VERSION_CODENAME", "")
    return OsRelease(name, version, name + short, like, pretty, codename)


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value.strip("\"'")


@record
class Uname:
    """`uname -a`, as far as anything depends on it."""

    release: str
    arch: str


def uname(answer: Answer) -> Uname | Unknown:
    """Kernel release and machine; the build text between them has any number of words."""
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    fields = text.split()
    arch = next((field for field in reversed(fields) if field in _ARCHITECTURES), None)
    if len(fields) < 4 or fields[0] != "Linux" or arch is None or not re.match(r"\d+\.\d+", fields[2]):
        return Unknown(f"uname: not the answer of a Linux kernel: {quote(text)}", answer.item)
    return Uname(fields[2], arch)


def python(answer: Answer) -> tuple[int, int, int] | Absent | Unknown:
    """Version of the host's interpreter; Absent where there is none."""
    if answer.missing:
        return ABSENT
    text = output(answer)
    if isinstance(text, Unknown):
        return text
    found = re.match(r"\s*(?:Python\s+)?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    if not found:
        return Unknown(f"python: no version in {quote(text)!r}", answer.item)
    return int(found[1]), int(found[2]), int(found[3] or 0)


def virtualization(answer: Answer) -> Virtualization | Unknown:
    text = output(answer, ok=(0, 1))  # it ends with 1 where it prints `none`
    if isinstance(text, Unknown):
        return text
    kind = text.strip()
    if kind == "none" or kind in _CONTAINERS or kind in _MACHINES:
        return Virtualization(kind)
    said = quote(words(answer)) or "nothing"
    return Unknown(f"systemd-detect-virt printed what is not known: {said}", answer.item)


def secure_boot(answer: Answer) -> SecureBoot | Unknown:
    """From `mokutil --sb-state`. Without UEFI it says so and ends with an error; that is an answer too."""
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    if answer.cut:
        return Unknown(f"{answer.item} was cut at the collector's limit", answer.item)
    said = words(answer)
    if re.search(r"^SecureBoot enabled$", said, re.MULTILINE):
        setup = re.search(r"setup mode", said, re.IGNORECASE)
        return SecureBoot(setup is None, quote(said))
    off = r"^SecureBoot disabled$|EFI variables are not supported|doesn't support Secure Boot"
    if re.search(off, said, re.MULTILINE):
        return SecureBoot(False, quote(said))
    return Unknown(f"mokutil: {quote(said) or 'nothing was printed'}", answer.item)


def key_enrolled(answer: Answer) -> bool | Unknown:
    """Whether the machine owner's list has the key that DKMS signs with (`mokutil --test-key`)."""
    if answer.silence is not None:
        return Unknown(answer.silence, answer.item)
    if answer.cut:
        return Unknown(f"{answer.item} was cut at the collector's limit", answer.item)
    said = words(answer)
    if "is already enrolled" in said or "is not enrolled" in said:
        return "is already enrolled" in said
    return Unknown(f"mokutil: {quote(said) or 'nothing was printed'}", answer.item)
