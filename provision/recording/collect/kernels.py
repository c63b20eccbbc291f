"""Installed kernels and modules, and the nvidia module that each kernel has on disk."""

import os
import re

from .asking import ask, program
from .reading import as_json, names, peek

MYPY = False
if MYPY:
    from typing import Any, Dict, Optional


def kernels() -> "Dict[str, Any]":
    """Installed kernels with image, headers and the nvidia module on disk for each."""
    found = []
    for release in names("/lib/modules"):
        at = os.path.join("/lib/modules", release)
        if not os.path.isdir(at):
            continue
        image = any(
            os.path.exists(path)
            for path in (
                "/boot/vmlinuz-" + release,
                "/boot/vmlinux-" + release,
                "/boot/Image-" + release,
                at + "/vmlinuz",
            )
        )
        row: "Dict[str, Any]" = {
            "release": release,
            "image": image,
            "headers": os.path.exists(os.path.join(at, "build", "Makefile")),
            "initrd": any(
                os.path.exists("/boot/" + name % release)
                for name in ("initrd.img-%s", "initramfs-%s.img", "initrd-%s")
            ),
        }
        row.update(nvidia_module(at))
        found.append(row)
    return as_json(found)


# Debian names it nvidia-current(-open).ko or after the branch; everybody else nvidia.ko. The
# companions nvidia-drm, -modeset, -uvm, -peermem, -fs and -vgpu are other modules.
_MODULE = re.compile(r"nvidia(?:-(?:current|tesla|legacy)(?:-[\w.]+?)?(?:-open)?)?\.ko(?:\.(?:xz|zst|gz))?$")
_COMPANION = re.compile(r"-(?:drm|modeset|uvm|peermem|fs|vgpu[\w-]*)\.ko")


def nvidia_module(modules: str) -> "Dict[str, Any]":
    """Version, licence and path of the nvidia module below /lib/modules/RELEASE."""
    found = []
    for folder, _, entries in os.walk(modules):
        if folder.startswith(modules + "/build") or folder.startswith(modules + "/source"):
            continue
        found += [os.path.join(folder, e) for e in entries if _MODULE.match(e) and not _COMPANION.search(e)]
    if not found:
        return {"nvidia_module": None}
    # depmod's default order looks into updates first (depmod.d(5)).
    found.sort(key=lambda path: (0 if "/updates/" in path else 1, path))
    said = ask(["modinfo", found[0]])
    values: "Dict[str, str]" = {}
    for line in said.get("stdout", "").splitlines():
        key, _, value = line.partition(":")
        values.setdefault(key.strip(), value.strip())
    version = values.get("version") or _version_inside(found[0]) or "unknown"
    row: "Dict[str, Any]" = {
        "nvidia_module": version,
        "nvidia_path": found[0],
        "nvidia_license": values.get("license"),
    }
    row["nvidia_signer"] = values.get("signer")
    if len(found) > 1:
        row["nvidia_more"] = found[1:]
    return row


def _version_inside(path: str) -> "Optional[str]":
    """The version in an uncompressed module's .modinfo section, where there is no modinfo to ask."""
    if not path.endswith(".ko"):
        return None
    with open(path, "rb") as module:
        found = re.search(rb"\0version=([0-9.]+)\0", module.read())
    return found.group(1).decode() if found else None


def lsmod() -> "Dict[str, Any]":
    if program("lsmod") and os.path.exists("/proc/modules"):
        return ask(["lsmod"])
    lines = ["Module                  Size  Used by"]
    text = peek("/proc/modules")
    if text is None and not os.path.isdir("/sys/module"):
        return {"missing": True}
    for line in (text or "").splitlines():
        part = line.split()
        lines.append("%-20s %8s  %s %s" % (part[0], part[1], part[2], part[3].strip(",").replace("-", "")))
    return {"rc": 0, "stdout": "\n".join(lines) + "\n", "stderr": ""}
