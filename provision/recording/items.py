"""The questions that a recording asks, as data. What an answer means stands in `facts`, not here.

An item is a command, a file, a glob of files, or a function of `collect` (a builtin). A builtin stands
in for a command where the command would change the host (`ss` loads the kernel's diag modules,
`timedatectl` starts a service, `apt-mark` writes apt's cache), where it costs the host much more
(`systemctl list-unit-files`), where it is missing on minimal images
(`lspci`), or where one question has many answers (`sshd -T`). Its answer has the form that the
contract fixes; lists are JSON text in `stdout`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from .names import DRIVER_FILES, FILES, GLOBS, INSTALLED, POLICY, PROPERTIES, SYSCTLS, UNITS

__all__ = ["FILES", "GLOBS", "ITEMS", "Item", "questions"]

TOTAL_SECONDS = 60.0
"""Limit for one whole recording; a healthy host takes about half a second."""

QUICK = 5.0
NORMAL = 10.0
# Without persistence the driver sets up each GPU anew for nvidia-smi, at one to two seconds a card.
DRIVER = 20.0


@dataclass(frozen=True)
class Item:
    """One question. Exactly one of `argv`, `builtin` and `glob` is set.

    `when` names a condition of `collect.WHEN` without which it is not asked. Items of one `lane` run
    one after another, and after one that hangs the rest are not asked. `never_twice`: not asked while
    an earlier process of that name hangs in the kernel. `root`: `denied` without rights, for tools that
    answer wrongly instead of saying so. `host_mounts`: asked outside the read-only view, since it is
    about mounts. `as_nobody`: run without rights where they are not needed, because the tool writes
    when it can. `unless_read_only`: further arguments where the read-only view could not be had.
    `limit` is bytes of output.
    """

    name: str
    argv: tuple[str, ...] = ()
    builtin: str = ""
    args: tuple[Any, ...] = ()
    glob: str = ""
    seconds: float = QUICK
    lane: str = ""
    when: str = ""
    limit: int = 0
    never_twice: bool = False
    root: bool = False
    host_mounts: bool = False
    as_nobody: bool = False
    unless_read_only: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For the wire: only what is set."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) or f.name == "name"}


def command(name: str, line: str, **more: Any) -> Item:
    return Item(name, argv=tuple(line.split()), **more)


def builtin(name: str, function: str, *args: Any, **more: Any) -> Item:
    return Item(name, builtin=function, args=args, **more)


_SMI: dict[str, Any] = {"lane": "nvidia-smi", "when": "driver-loaded", "never_twice": True}

# Names are names (apt 2.0 and newer): one with a dot that is not found would be tried as a regular expression
# on every package, 40 ms of the host's time each.
_AS_THEY_STAND = ("-o", "APT::Cmd::Pattern-Only=true")

# They are started in this order: what takes longest comes first.
_COMMANDS: tuple[Item, ...] = (
    Item(
        "apt.policy",
        argv=("apt-cache", *_AS_THEY_STAND, "policy", *POLICY, "@kernel-packages", INSTALLED),
        unless_read_only=("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
        seconds=NORMAL,
        limit=4 << 20,
    ),
    command("nvidia-smi.query", "nvidia-smi -q -x", seconds=DRIVER, limit=4 << 20, **_SMI),
    command("nvidia-smi.topology", "nvidia-smi topo -m", seconds=NORMAL, **_SMI),
    command("nvidia-smi.list", "nvidia-smi -L", seconds=NORMAL, **_SMI),
    command("nvidia-smi.nvlink", "nvidia-smi nvlink -s", seconds=NORMAL, **_SMI),
    command("lspci", "lspci -Dnnk", limit=2 << 20),
    command("dmesg", "dmesg", limit=6 << 20),
    command("uname", "uname -a"),
    command("virtualization", "systemd-detect-virt"),
    command("modinfo.nvidia", "modinfo nvidia"),
    command("dkms.status", "dkms status", seconds=NORMAL),
    command("secure-boot.dkms-key", "mokutil --test-key /var/lib/dkms/mok.pub", root=True),
    command("secure-boot.shim-key", "mokutil --test-key /var/lib/shim-signed/mok/MOK.der", root=True),
    Item(
        "dpkg.list",
        argv=("dpkg-query", "-W", "-f=${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\n"),
        seconds=NORMAL,
        limit=4 << 20,
    ),
    Item(
        "rpm.list",
        argv=("rpm", "-qa", "--qf", "ii \t%{NAME}\t%{EVR}\t%{ARCH}\n"),
        seconds=NORMAL,
        limit=4 << 20,
        as_nobody=True,
    ),
    command("lsblk", "lsblk -J -b -O", seconds=NORMAL, limit=4 << 20, host_mounts=True),
    command("findmnt", "findmnt -J", host_mounts=True, limit=2 << 20),
    # The cache file is switched off: blkid would write it.
    command("blkid", "blkid -c /dev/null -o export", seconds=NORMAL, root=True, limit=1 << 20),
    command(
        "lvm",
        "lvs --readonly --reportformat json --units b --nosuffix --all "
        "-o vg_name,vg_size,vg_free,lv_name,lv_size,lv_attr,segtype,origin,pool_lv,data_percent,devices",
        root=True,
    ),
    command("lvm.groups", "vgs --readonly --reportformat json --units b --nosuffix", root=True),
    command("ip.addresses", "ip -j addr", limit=2 << 20),
    command("ip.links", "ip -j -d link", limit=2 << 20),
    command("ip.routes", "ip -j route show table main", limit=1 << 20),
    Item(
        "docker.info",
        argv=("docker", "info", "--format", "{{json .}}"),
        seconds=NORMAL,
        when="docker-active",
        lane="docker",
    ),
    Item(
        "docker.containers",
        argv=("docker", "ps", "--no-trunc", "--format", "{{json .}}"),
        seconds=NORMAL,
        when="docker-active",
        lane="docker",
    ),
    command("docker.unit", "systemctl cat --no-pager docker", when="systemd"),
    command(
        "units.failed", "systemctl list-units --no-pager --plain --no-legend --state=failed", when="systemd"
    ),
    command(
        "units.running",
        "systemctl list-units --no-pager --plain --no-legend --type=service,socket --state=active",
        when="systemd",
    ),
    command("memory", "cat /proc/meminfo"),
)

_BUILTINS: tuple[Item, ...] = (
    builtin("os-release", "file", "/etc/os-release"),
    builtin("mdstat", "file", "/proc/mdstat"),
    builtin("apt.history", "tail", "/var/log/apt/history.log", 64 * 1024, lane="logs"),
    builtin("pci", "pci", lane="sys"),
    builtin("net", "net", lane="sys"),
    builtin("rdma", "rdma", lane="sys"),
    builtin("cpu", "cpu", lane="sys"),
    builtin("dmi", "dmi", lane="sys"),
    builtin("sysctl", "sysctl", list(SYSCTLS), lane="sys"),
    builtin("limits", "limits", lane="sys"),
    builtin("time", "clock", lane="sys"),
    builtin("lsmod", "lsmod", lane="sys"),
    builtin("secure-boot", "secure_boot", lane="sys"),
    builtin("rights", "rights", lane="sys"),
    builtin("kernels", "kernels", seconds=15.0),
    builtin("nvidia.devices", "nvidia_devices", lane="nvidia"),
    builtin("nvidia.processes", "nvidia_processes", lane="nvidia"),
    builtin("nvidia.files", "nvidia_files", list(DRIVER_FILES), lane="nvidia", seconds=NORMAL),
    builtin("cuda.installed", "cuda_installed", lane="nvidia"),
    builtin("cuda.conda", "cuda_conda", lane="nvidia"),
    builtin("cdi", "cdi", lane="nvidia"),
    builtin("docker.started", "docker_started", lane="nvidia"),
    builtin("disks.by-id", "disks_by_id", lane="disks"),
    builtin("disks.space", "space", lane="disks"),
    builtin("disks.surfaces", "surfaces", seconds=20.0),
    builtin("nvme.smart", "nvme_smart", seconds=15.0),
    builtin("units.files", "unit_files"),
    builtin("units", "units", list(UNITS), PROPERTIES, seconds=NORMAL),
    builtin("sockets", "sockets"),
    builtin("firewall", "firewall", seconds=15.0),
    builtin("sshd.files", "sshd_files", lane="ssh-files"),
    builtin("sshd.effective", "sshd_effective", seconds=20.0),
    builtin("accounts", "accounts", seconds=20.0),
    builtin("accounts.other", "other_accounts", lane="sys"),
    builtin("apt.holds", "apt_holds", seconds=NORMAL),
    builtin("apt.lists", "apt_lists", lane="logs"),
    builtin("apt.locks", "package_locks", lane="logs"),
)

_FILE_ITEMS: tuple[Item, ...] = tuple(builtin(f"file:{path}", "file", path) for path in FILES)
_GLOB_ITEMS: tuple[Item, ...] = tuple(Item(f"glob:{pattern}", glob=pattern) for pattern in GLOBS)

ITEMS: tuple[Item, ...] = _COMMANDS + _BUILTINS + _FILE_ITEMS + _GLOB_ITEMS


def questions() -> dict[str, Any]:
    """All items as the document that `collect.main` takes."""
    return {"items": [item.as_dict() for item in ITEMS], "seconds": TOTAL_SECONDS}
