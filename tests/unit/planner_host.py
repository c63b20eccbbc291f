"""Hosts for the tests of planners and controls: a plain one with two GPUs and one network card, to be changed by parts."""

# ruff: noqa: E501

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from provision.catalog.stack import Driver, Stack
from provision.facts import Facts
from provision.facts.known import Unknown
from provision.facts.smi_model import Clocks, Ecc, Gpu, Mig, Mode, Power, SmiReport
from provision.planners import nvidia_repository
from provision.profile.declared import declared
from provision.profile.model import Profile
from provision.recording.model import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping

KERNEL = "6.1.0-57-amd64"
RELEASE = "535.261.03"
DRIVER = (
    "nvidia-kernel-dkms", "nvidia-kernel-support", "firmware-nvidia-gsp", "nvidia-alternative", "nvidia-smi",
    "libnvidia-ml1", "libcuda1",
)  # fmt: skip
BESIDE = {"nvidia-persistenced": "535.171.04-1", "nvidia-modprobe": "535.161.07-1"}
PLAIN = {
    "linux-image-amd64": "6.1.192-3",
    f"linux-image-{KERNEL}": "6.1.192-3",
    "linux-headers-amd64": "6.1.192-3",
    f"linux-headers-{KERNEL}": "6.1.192-3",
    "bash": "5.2.15-2",
}
CONVERGED = {**PLAIN, **dict.fromkeys(DRIVER, f"{RELEASE}-1"), **BESIDE, "dkms": "3.0.10-8"}
SOURCES = "deb http://deb.example/debian bookworm main contrib non-free non-free-firmware\n"


def said(text: Any, rc: int = 0) -> dict[str, Any]:
    """A command's answer; anything but a text is printed as JSON."""
    return {
        "rc": rc,
        "stdout": text if isinstance(text, str) else json.dumps(text),
        "stderr": "",
        "seconds": 0.1,
    }


def text(content: str) -> dict[str, Any]:
    return {"text": content, "mode": "0644", "owner": "root"}


MISSING: dict[str, Any] = {"missing": True}


def link(name: str, address: str | None, **more: Any) -> dict[str, Any]:
    """One entry of `ip -j addr`; `up=False` has no carrier."""
    up = more.pop("up", True)
    info = [{"family": "inet", "local": address, "prefixlen": 24, "scope": "global"}] if address else []
    return {
        "ifname": name,
        "flags": ["BROADCAST", "UP", "LOWER_UP"] if up else ["BROADCAST", "UP", "NO-CARRIER"],
        "operstate": "UP" if up else "DOWN",
        "mtu": 1500,
        "link_type": "ether",
        "address": "02:00:00:00:00:01",
        "addr_info": info,
        **more,
    }


LOOPBACK: dict[str, Any] = {
    "ifname": "lo", "flags": ["LOOPBACK", "UP", "LOWER_UP"], "operstate": "UNKNOWN", "mtu": 65536, "link_type": "loopback",
    "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host"}],
}  # fmt: skip
DOCKER = link("docker0", "172.17.0.1", up=False)


def port(
    device: str, state: str = "ACTIVE", *, layer: str = "InfiniBand", rate: str = "400 Gb/sec", **more: Any
) -> dict[str, Any]:
    kind = "RoCE v2" if layer == "Ethernet" else "IB/RoCE v1"
    gid = {"index": 0, "gid": "fe80:0000:0000:0000:0000:0000:0000:0001", "type": kind}
    return {
        "device": device,
        "port": 1,
        "state": state,
        "rate": rate,
        "link_layer": layer,
        "gids": [gid],
        **more,
    }


def dpkg(packages: Mapping[str, str]) -> dict[str, Any]:
    return said("".join(f"ii \t{name}\t{version}\tamd64\n" for name, version in packages.items()))


def policy(uri: str) -> dict[str, Any]:
    """`apt-cache policy` of a package that only the distribution's own archive has."""
    return said(
        "e2fsprogs:\n  Installed: 1.47.0-2\n  Candidate: 1.47.0-2\n  Version table:\n *** 1.47.0-2 500\n"
        f"        500 {uri} bookworm/main amd64 Packages\n        100 /var/lib/dpkg/status\n"
    )


def pci(*drivers: str | None) -> dict[str, Any]:
    """One A100 a driver that is bound to it."""
    cards = [
        {"address": f"0000:{6 + i:02x}:00.0", "vendor": "0x10de", "device": "0x20b2", "class": "0x030200", "driver": driver,
         "numa_node": 0}
        for i, driver in enumerate(drivers)
    ]  # fmt: skip
    return said(
        [*cards, {"address": "0000:00:01.0", "vendor": "0x8086", "device": "0x1237", "class": "0x060000"}]
    )


def kernel(release: str = KERNEL, module: str | None = RELEASE, **more: Any) -> dict[str, Any]:
    licence = {"nvidia_license": "NVIDIA"} if module else {}
    return {"release": release, "image": True, "headers": True, "nvidia_module": module, **licence, **more}


def unit(name: str, active: str = "active", enabled: str = "enabled", *commands: str) -> str:
    lines = [f"Id={name}", f"Names={name}", f"LoadState={'loaded' if active else 'not-found'}",
             f"ActiveState={active or 'inactive'}", f"UnitFileState={enabled}"]  # fmt: skip
    lines += [
        f"ExecStart={{ path={c.split()[0]} ; argv[]={c} ; ignore_errors=no ; status=0/0 }}" for c in commands
    ]
    return "\n".join(lines)


DAEMON = unit("nvidia-persistenced.service", "active", "enabled", "/usr/bin/nvidia-persistenced --user nvpd")
NO_CLOCKS = unit("gpu-provision-clocks.service", "", "")
BASE: dict[str, Any] = {
    "os-release": text(
        'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12"\n'
    ),
    "uname": said(f"Linux gpu01 {KERNEL} #1 SMP PREEMPT_DYNAMIC Debian x86_64 GNU/Linux\n"),
    "virtualization": said("none\n", 1),
    "secure-boot": said("SecureBoot disabled\n"),
    "pci": pci("nvidia", "nvidia"),
    "kernels": said([kernel()]),
    "lsmod": said("Module                  Size  Used by\nnvidia 62300160 2\n"),
    "dkms.status": said(f"nvidia-current/{RELEASE}, {KERNEL}, x86_64: installed\n"),
    "dpkg.list": dpkg(CONVERGED),
    "apt.holds": said("\n".join([*DRIVER, *BESIDE]) + "\n"),
    "apt.history": MISSING,
    "apt.policy": policy("http://deb.example/debian"),
    "nvidia.files": said([]),
    "units": said(f"{DAEMON}\n\n{NO_CLOCKS}\n"),
    "ip.addresses": said([LOOPBACK, link("ens5", "10.0.0.5"), DOCKER]),
    "ip.links": said([]),
    "ip.routes": said([{"dst": "default", "gateway": "10.0.0.1", "dev": "ens5", "metric": 100}]),
    "rdma": said([]),
    "file:/proc/driver/nvidia/version": text(
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {RELEASE}  Thu\n"
    ),
    "file:/sys/module/nvidia/version": text(f"{RELEASE}\n"),
    "file:/etc/apt/sources.list": text(SOURCES),
    "file:/etc/apt/sources.list.d/gpu-provision.sources": MISSING,
    f"file:{nvidia_repository.SOURCE}": MISSING,
    f"file:{nvidia_repository.KEYRING}": MISSING,
    f"file:{nvidia_repository.PIN}": MISSING,
    "file:/etc/modprobe.d/gpu-provision.conf": MISSING,
    "file:/etc/nccl.conf": MISSING,
    "file:/etc/systemd/system/gpu-provision-clocks.service": MISSING,
    "file:/etc/systemd/system/nvidia-persistenced.service.d/gpu-provision.conf": MISSING,
    "file:/usr/local/lib/gpu-provision/clocks": MISSING,
    "file:/run/reboot-required": MISSING,
    "file:/var/run/reboot-required": MISSING,
    "file:/run/reboot-required.pkgs": MISSING,
}


def facts(**changed: Any) -> Facts:
    """Facts of the plain host with some items changed; `__` in a name stands for `.`, `file__PATH` is not needed
    as whole names can be given in `items`."""
    items = {**BASE, **changed.pop("items", {})}
    items.update({name.replace("__", "."): answer for name, answer in changed.items()})
    return Facts(Recording("gpu01", "2026-11-30T12:00:00Z", True, 0.3, items))


NOT_TOLD = Unknown("N/A", "nvidia-smi.query")


def gpu(index: int = 0, **more: Any) -> Gpu:
    """An A100; what a test does not name is not told."""
    free = Clocks(NOT_TOLD, NOT_TOLD, NOT_TOLD)
    given: dict[str, Any] = dict.fromkeys(Gpu.__dataclass_fields__, NOT_TOLD)
    given |= {
        "index": index,
        "name": "NVIDIA A100-SXM4-80GB",
        "uuid": f"GPU-{index:08d}-0000-0000-0000-000000000000",
        "bus_id": f"0000:{6 + index:02x}:00.0",
        "architecture": "Ampere",
        "persistence": True,
        "clocks": free,
        "application_clocks": Clocks(1275, 1593, NOT_TOLD),
        "default_application_clocks": Clocks(1275, 1593, NOT_TOLD),
        "max_clocks": Clocks(1410, 1593, 1410),
        "supported_clocks": {1593: (1410, 1395, 1380, 1275, 210)},
        "mig": Mig(Mode(False, False), ()),
        "ecc": Ecc(Mode(True, True), *(NOT_TOLD,) * 5),  # type: ignore[arg-type]
        "power": Power(60.0, 400.0, 400.0, 100.0, 400.0),
        "compute_mode": "Default",
        "processes": (),
        "errors": (),
    }
    return Gpu(**(given | more))


def with_gpus(host: Facts, *cards: Gpu) -> Facts:
    """The same host with a driver that answers for these cards."""
    host.__dict__["smi"] = SmiReport(RELEASE, "12.2", len(cards), cards, ())
    return host


def profile(**variables: Any) -> Profile:
    """The roles' defaults with some variables changed, from Debian's archive as this version can."""
    defaults = {name: variable.default for name, variable in declared().items()}
    chosen = {"nvidia_driver_source": "debian", **variables}
    return Profile("test", {**defaults, **chosen}, chosen)


def stack(**driver: Any) -> Stack:
    """The set for the plain host."""
    packages = (*DRIVER, *BESIDE)
    versions = {**dict.fromkeys(DRIVER, f"{RELEASE}-1"), **BESIDE}
    given: dict[str, Any] = {
        "branch": 535,
        "version": RELEASE,
        "minimum": "450.80.02",
        "modules": "proprietary",
        "source": "debian",
        "packages": packages,
        "pin": tuple(f"{name}={versions[name]}" for name in packages),
        "main": "nvidia-smi",
    }
    return Stack(satisfiable=True, driver=Driver(**(given | driver)))
