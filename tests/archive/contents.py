"""What packages hold: dummies in the right places, and kernel modules whose real DKMS build takes a moment."""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .packages import Package

SOURCES = Path(__file__).parent / "payload"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MODULES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm")
STAND_IN = '#!/bin/sh\necho "$0 is a test archive\'s stand-in" >&2\nexit 1\n'


@dataclass
class Tree:
    """A package's files below `root`, its conffiles and its maintainer scripts' parts."""

    root: Path
    conffiles: list[str] = field(default_factory=list)
    postinst: list[str] = field(default_factory=list)
    prerm: list[str] = field(default_factory=list)

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        if path.startswith("/etc/"):
            self.conffiles.append(path)

    def link(self, path: str, to: str) -> None:
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(to)


def fill(tree: Tree, package: Package) -> None:
    """Write all that a package holds. Raises KeyError on a kind of content that nothing here makes."""
    for raw in package.payload:
        content = {
            key: value.format_map(package.values) if isinstance(value, str) else value
            for key, value in raw.items()
        }
        KINDS[next(iter(content))](tree, package, content)
    tree.postinst.append(package.postinst)
    tree.prerm.append(package.prerm)


def _text(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    tree.put(content["text"], content["content"])


def _script(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    tree.put(content["script"], content["content"], 0o755)


def _copy(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    text = (SOURCES / content["copy"]).read_text().replace("@VERSION@", package.upstream)
    tree.put(content["as"], text, 0o755)


def _link(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    tree.link(content["link"], content["to"])


def _program(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    tree.put(content["program"], STAND_IN, 0o755)


def _library(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """A library whose file is named after the release, as the driver's are; the loader's name links to it."""
    name = f"{content['library']}.{package.upstream}"
    tree.put(f"{LIBRARIES}/{name}", "library\n")
    tree.link(f"{LIBRARIES}/{content['library']}.1", name)


def _dkms(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    _source(tree, package, {"source": content["dkms"], "licence": content["licence"]})
    _builds(tree, package, {"builds": content["dkms"]})


def _source(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """Sources for DKMS below /usr/src: modules that hold nothing but what modinfo reads."""
    name, version = content["source"], package.upstream
    folder = f"/usr/src/{name}-{version}"
    suffix = name.removeprefix("nvidia") if name != "nvidia-srv" else ""
    built = [f"{module.replace('nvidia', f'nvidia{suffix}', 1)}" for module in MODULES]
    lines = [f'PACKAGE_NAME="{name}"', f'PACKAGE_VERSION="{version}"', 'AUTOINSTALL="yes"',
             f'MAKE[0]="make KERNEL_SOURCE=${{kernel_source_dir}} MODULES=\'{" ".join(built)}\'"', 'CLEAN="true"']  # fmt: skip
    for index, module in enumerate(built):
        lines += [
            f'BUILT_MODULE_NAME[{index}]="{module}"',
            f'DEST_MODULE_LOCATION[{index}]="/updates/dkms"',
            f'STRIP[{index}]="no"',
        ]
        tree.put(f"{folder}/{module}.c", _module(MODULES[index], version, content["licence"]))
    tree.put(f"{folder}/dkms.conf", "\n".join(lines) + "\n")
    tree.put(f"{folder}/Makefile", (SOURCES / "Makefile").read_text())


def _module(name: str, version: str, licence: str) -> str:
    said = [
        f"version={version}",
        f"license={licence}",
        f"name={name.replace('-', '_')}",
        "supported=external",
    ]
    words = " ".join(f'"{line}\\0"' for line in said)
    return f'const char info[] __attribute__((section(".modinfo"), used)) = {words};\n'


def _builds(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """What dh_dkms makes of a package: build on configuration, leave on removal."""
    name, version = content["builds"], package.upstream
    tree.postinst.append(f'/usr/lib/dkms/common.postinst {name} {version} "" "" "$2"')
    tree.prerm.append(f"dkms remove -m {name} -v {version} --all || true")


def _prebuilt(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """A module built for one kernel. As Ubuntu's packages do, it is linked on the host, from objects."""
    folder = f"/lib/modules/{content['prebuilt']}/kernel/{content['folder']}"
    objects = f"{folder}/bits"
    for module in MODULES:
        tree.put(f"{objects}/{module}.c", _module(module, content["driver"], content["licence"]))
    tree.put(f"{objects}/Makefile", (SOURCES / "Makefile").read_text())
    tree.postinst.append(
        f"make -s -C {objects} KERNEL_SOURCE=/ MODULES='{' '.join(MODULES)}'\n"
        f"mv {objects}/*.ko {folder}/ && depmod {content['prebuilt']} 2>/dev/null || true"
    )
    tree.prerm.append(f"rm -f {folder}/*.ko; depmod {content['prebuilt']} 2>/dev/null || true")


def _persistenced(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """The daemon. Ubuntu's unit is static and leaves persistence off; Debian's is enabled and has it on."""
    user, static = content["persistenced"], content.get("static", False)
    more = " --no-persistence-mode --verbose" if static else " --verbose"
    unit = ["[Unit]", "Description=NVIDIA Persistence Daemon", "Wants=syslog.target", "", "[Service]",
            "Type=forking", f"ExecStart=/usr/bin/nvidia-persistenced --user {user}{more}",
            "ExecStopPost=/bin/rm -rf /var/run/nvidia-persistenced"]  # fmt: skip
    unit += [] if static else ["", "[Install]", "WantedBy=multi-user.target"]
    tree.put("/usr/bin/nvidia-persistenced", STAND_IN, 0o755)
    tree.put("/lib/systemd/system/nvidia-persistenced.service", "\n".join(unit) + "\n")
    account = f"adduser --system --group --quiet --no-create-home --home /nonexistent {user}"
    enable = (
        ""
        if static
        else "systemctl enable -q nvidia-persistenced\nsystemctl restart nvidia-persistenced || true"
    )
    tree.postinst.append(
        f"getent passwd {user} >/dev/null || {account}\nsystemctl daemon-reload || true\n{enable}"
    )
    tree.prerm.append('[ "$1" != remove ] || systemctl disable -q --now nvidia-persistenced || true')


def _service(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    """A daemon of the NVSwitch fabric, which ends where the loaded driver is of another release."""
    name = content["service"]
    text = (SOURCES / "fabric-daemon").read_text().replace("@VERSION@", package.upstream)
    tree.put(content["program"], text, 0o755)
    unit = f"[Unit]\nDescription={name}\n\n[Service]\nExecStart={content['program']}\n\n[Install]\nWantedBy=multi-user.target\n"
    tree.put(f"/lib/systemd/system/{name}.service", unit)
    tree.postinst.append("systemctl daemon-reload || true")
    tree.prerm.append(f'[ "$1" != remove ] || systemctl disable -q --now {name} || true')


def _kernel(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    release = content["kernel"]
    tree.put(f"/boot/vmlinuz-{release}", "kernel\n")
    tree.put(f"/boot/config-{release}", "CONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n")  # what initramfs-tools asks
    tree.put(f"/lib/modules/{release}/modules.builtin", "")
    tree.put(f"/lib/modules/{release}/modules.order", "")
    tree.postinst.append(f"depmod {release}; echo initramfs > /boot/initrd.img-{release}")
    tree.prerm.append(f"rm -f /boot/initrd.img-{release}")


def _headers(tree: Tree, package: Package, content: Mapping[str, Any]) -> None:
    release = content["headers"]
    tree.put(f"/usr/src/linux-headers-{release}/Makefile", "all:\n")
    # By this folder DKMS tells that headers are there.
    tree.put(f"/usr/src/linux-headers-{release}/include/generated/autoconf.h", "")
    tree.link(f"/lib/modules/{release}/build", f"/usr/src/linux-headers-{release}")


KINDS: Mapping[str, Callable[[Tree, Package, Mapping[str, Any]], None]] = {
    "text": _text, "script": _script, "copy": _copy, "link": _link, "program": _program, "library": _library,
    "dkms": _dkms, "source": _source, "builds": _builds, "prebuilt": _prebuilt, "persistenced": _persistenced,
    "service": _service, "kernel": _kernel, "headers": _headers,
}  # fmt: skip
