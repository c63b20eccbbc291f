"""The questions that a recording asks, as data. What an answer means stands in `facts`, not here.

An item is a command, a file, a glob of files, or a function of `collect` (a builtin). A builtin stands
in for a command where the command would change the host (`ss` loads the kernel's diag modules,
`timedatectl` starts a service, `apt-mark` writes apt's cache), where it is missing on minimal images
(`lspci`), or where one question has many answers (`sshd -T`). Its answer has the form that the
contract fixes; lists are JSON text in `stdout`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

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
    about mounts. `as_nobody`: run without rights where they are not needed, because the tool writes when it can.
    `unless_read_only`: further arguments where the read-only view could not be had. `limit` is bytes of output.
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


# ------------------------------------------------------------------------------------------- files

FILES: tuple[str, ...] = (
    # the driver
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/sys/module/nvidia/version",
    "/etc/modprobe.d/gpu-provision.conf",
    "/etc/systemd/system/gpu-provision-clocks.service",
    "/etc/systemd/system/nvidia-persistenced.service.d/gpu-provision.conf",
    "/etc/nvidia-container-runtime/config.toml",
    "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env",
    "/var/log/nvidia-installer.log",
    # what this project writes for itself
    "/etc/gpu-provision/host.yml",
    "/etc/gpu-provision/manifest.json",
    "/etc/gpu-provision/clocks.json",
    "/etc/gpu-provision/nccl.env",
    # communication
    "/etc/nccl.conf",
    "/etc/hosts",
    "/etc/resolv.conf",
    # ssh and firewall
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d/00-gpu-provision.conf",
    "/etc/default/ssh",
    "/etc/nftables.conf",
    "/etc/default/ufw",
    "/etc/ufw/ufw.conf",
    "/etc/ufw/user.rules",
    "/etc/ufw/user6.rules",
    # containers
    "/etc/docker/daemon.json",
    "/var/snap/docker/current/config/daemon.json",
    "/etc/containerd/config.toml",
    # storage
    "/etc/fstab",
    "/etc/crypttab",
    "/etc/mdadm/mdadm.conf",
    "/etc/mdadm.conf",
    # packages
    "/etc/apt/sources.list",
    "/etc/apt/preferences",
    "/etc/apt/apt.conf",
    "/etc/apt/apt.conf.d/20auto-upgrades",
    "/etc/apt/apt.conf.d/50unattended-upgrades",
    "/etc/apt/apt.conf.d/52gpu-provision",
    "/etc/apt/preferences.d/gpu-provision",
    "/etc/apt/preferences.d/cuda-repository-pin-600",
    "/etc/needrestart/conf.d/gpu-provision.conf",
    "/run/reboot-required",
    "/run/reboot-required.pkgs",
    "/var/run/reboot-required",
    "/var/run/reboot-required.pkgs",
    # limits and the kernel
    "/etc/security/limits.conf",
    "/etc/security/limits.d/gpu-provision.conf",
    "/etc/sysctl.conf",
    "/etc/sysctl.d/90-gpu-provision.conf",
    "/etc/systemd/system.conf",
    "/etc/ld.so.conf",
    "/etc/profile.d/gpu-provision.sh",
    "/etc/default/grub",
    "/proc/cmdline",
    "/proc/sys/kernel/random/boot_id",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/etc/hostname",
    "/etc/machine-info",
    "/etc/selinux/config",
)
"""Files with a name of their own. Known absent where they are not there."""

GLOBS: tuple[str, ...] = (
    "/proc/driver/nvidia/gpus/*/information",
    "/etc/modprobe.d/*",
    "/etc/modules-load.d/*",
    "/etc/apt/sources.list.d/*",
    "/etc/apt/preferences.d/*",
    "/etc/apt/apt.conf.d/*",
    "/etc/yum.repos.d/*.repo",
    "/etc/dnf/plugins/versionlock.list",
    "/etc/yum/pluginconf.d/versionlock.list",
    "/etc/dnf/modules.d/*.module",
    "/etc/security/limits.d/*",
    "/etc/sysctl.d/*",
    "/etc/ld.so.conf.d/*",
    "/etc/gpu-provision/*",
    "/etc/needrestart/conf.d/*",
    "/etc/cloud/cloud.cfg.d/*.cfg",
    "/etc/nftables.d/*",
    "/etc/systemd/system/*.d/gpu-provision.conf",
    "/etc/systemd/system/gpu-provision*",
    "/etc/systemd/system/docker.service.d/*.conf",
    "/etc/systemd/system/*nvidia*",
    "/etc/systemd/system/*nvidia*.d/*.conf",
    "/etc/systemd/system/*.mount",
    "/etc/profile.d/*cuda*",
    "/etc/default/grub.d/*",
)
"""Files whose names are the host's own. `glob:PATTERN` lists those that are there."""

# ------------------------------------------------------------------------------- packages and units

# Names for `apt-cache policy`. Whole names: its patterns cost a pass over all packages each (2.5 s for
# sixty of them where the names cost 0.1 s), and so does a name with a dot that is not found, which is
# taken for a regular expression. Names that no archive has are simply not printed. The branches are those of
# NVIDIA's and Canonical's archives since 390.
_BRANCHES = "390 418 450 460 470 510 515 520 525 530 535 545 550 555 560 565 570 575 580 590 595 600 605 610 615 620 625"
_BY_BRANCH = (
    *["nvidia-driver-{}", "nvidia-driver-{}-open", "nvidia-driver-{}-server", "nvidia-driver-{}-server-open"],
    *["nvidia-open-{}", "cuda-drivers-{}", "nvidia-driver-pinning-{}", "nvidia-tesla-{}-driver", "nvidia-legacy-{}xx-driver"],
    *["nvidia-dkms-{}", "nvidia-dkms-{}-open", "nvidia-dkms-{}-server", "nvidia-dkms-{}-server-open", "nvidia-headless-{}"],
    *["nvidia-headless-{}-open", "nvidia-headless-{}-server", "nvidia-headless-{}-server-open"],
    *["nvidia-headless-no-dkms-{}-server", "nvidia-headless-no-dkms-{}-server-open", "nvidia-utils-{}"],
    *["nvidia-utils-{}-server", "nvidia-compute-utils-{}", "nvidia-compute-utils-{}-server", "libnvidia-compute-{}"],
    *["libnvidia-compute-{}-server", "nvidia-fabricmanager-{}", "nvidia-imex-{}", "libnvidia-nscq-{}"],
    *["linux-modules-nvidia-{}-generic", "linux-modules-nvidia-{}-open-generic"],
    *["linux-modules-nvidia-{}-server-generic", "linux-modules-nvidia-{}-server-open-generic"],
)
_CUDA = [
    f"{major}-{minor}" for major, last in ((11, 8), (12, 9), (13, 9), (14, 2)) for minor in range(last + 1)
]
POLICY: tuple[str, ...] = (
    *["nvidia-driver", "nvidia-driver-open", "nvidia-open", "nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "nvidia-dkms"],
    *["nvidia-dkms-open", "nvidia-kernel-source", "nvidia-open-kernel-source", "nvidia-kernel-support", "nvidia-kernel-common"],
    *["nvidia-driver-bin", "nvidia-driver-libs", "nvidia-driver-cuda", "nvidia-smi", "nvidia-persistenced", "nvidia-modprobe"],
    *["nvidia-settings", "nvidia-fabricmanager", "nvidia-fabric-manager", "nvidia-imex", "nvidia-alternative"],
    *["firmware-nvidia-gsp", "nvidia-firmware", "nvidia-container-toolkit", "nvidia-container-toolkit-base"],
    *["nvidia-container-runtime", "nvidia-docker2", "libnvidia-container1", "libnvidia-container-tools"],
    *["nvidia-cuda-toolkit", "nvidia-cudnn", "libnvidia-compute", "libnvidia-nscq", "libnvsdm", "nvlsm", "libnvidia-ml1"],
    *["libcuda1", "cuda-drivers", "cuda-toolkit", "cuda-keyring", "libnccl2", "libnccl-dev", "libcudnn8", "libcudnn8-dev", "cudnn"],
    *(name.format(n) for n in (11, 12, 13, 14) for name in ("cuda-toolkit-{}", "cudnn9-cuda-{}")),
    *(name.format(n) for n in (11, 12, 13, 14) for name in ("libcudnn9-cuda-{}", "libcudnn9-dev-cuda-{}")),
    *(
        name.format(n)
        for n in (11, 12, 13, 14)
        for name in ("libcudnn9-static-cuda-{}", "libcudnn9-headers-cuda-{}")
    ),
    *(name.format(n) for n in _CUDA for name in ("cuda-toolkit-{}", "cuda-compat-{}")),
    *(name.format(branch) for branch in _BRANCHES.split() for name in _BY_BRANCH),
    *["datacenter-gpu-manager", "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda12"],
    *["datacenter-gpu-manager-4-cuda13", "nsight-systems", "nsight-systems-cli", "nsight-compute", "docker.io", "docker-ce"],
    *["docker-ce-cli", "containerd", "containerd.io", "dkms", "linux-image-amd64", "linux-headers-amd64", "linux-image-arm64"],
    *["linux-headers-arm64", "linux-image-cloud-amd64", "linux-headers-cloud-amd64", "linux-image-generic"],
    *["linux-headers-generic", "linux-generic"],
    *["linux-aws", "linux-azure", "linux-gcp", "linux-nvidia", "linux-perf", "linux-tools-generic"],
    *["openssh-server", "nftables", "ufw", "fail2ban", "unattended-upgrades", "needrestart", "chrony", "systemd-timesyncd"],
    *["sysstat", "atop", "numactl", "nvme-cli", "hwloc", "fio", "mdadm", "xfsprogs", "e2fsprogs", "lvm2", "smartmontools", "pciutils"],
    *["infiniband-diags", "rdma-core", "ibverbs-utils", "prometheus-node-exporter", "mokutil", "python3", "python3-apt", "sudo"],
)
_INSTALLED = "@installed:.*(?:nvidia|cuda|cudnn|nccl|nvlsm|nvsdm|datacenter-gpu|nsight)"

UNITS: tuple[str, ...] = (
    *["nvidia-persistenced.service", "nvidia-fabricmanager.service", "nvidia-imex.service", "nvidia-dcgm.service"],
    *["dcgm.service", "nvidia-cdi-refresh.service", "nvidia-cdi-refresh.path", "nvidia-powerd.service", "nvidia-suspend.service"],
    *["gpu-provision-clocks.service", "docker.service", "docker.socket", "containerd.service", "snap.docker.dockerd.service"],
    *["podman.socket", "kubelet.service", "slurmd.service", "k3s.service", "ssh.service", "ssh.socket", "sshd.service", "sshd.socket"],
    *["nftables.service", "ufw.service", "firewalld.service", "netfilter-persistent.service", "fail2ban.service"],
    *["unattended-upgrades.service", "apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily-upgrade.service"],
    *["dnf-automatic.timer", "packagekit.service", "cloud-init.service", "systemd-timesyncd.service", "chrony.service"],
    *["chronyd.service", "ntp.service", "ntpsec.service", "fstrim.timer", "mdmonitor.service", "smartmontools.service"],
    *["smartd.service", "sysstat.service", "atop.service", "prometheus-node-exporter.service", "irqbalance.service"],
    *["tuned.service", "power-profiles-daemon.service", "cpufrequtils.service", "opensm.service", "openibd.service"],
    *["multipathd.service", "iscsid.service", "rpcbind.service", "gpu-provision-commit-confirm.timer"],
)

_PROPERTIES = (
    "Id,Names,LoadState,LoadError,ActiveState,SubState,UnitFileState,UnitFilePreset,Result,ExecStart,ExecMainStatus,"
    "FragmentPath,DropInPaths,Listen,NeedDaemonReload,ActiveEnterTimestamp,MainPID,TriggeredBy,NextElapseUSecRealtime"
)

SYSCTLS: tuple[str, ...] = (
    *["vm.swappiness", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_background_bytes"],
    *["vm.zone_reclaim_mode", "vm.nr_hugepages", "vm.overcommit_memory", "vm.max_map_count", "vm.min_free_kbytes"],
    *["vm.compaction_proactiveness", "vm.vfs_cache_pressure", "kernel.numa_balancing", "kernel.perf_event_paranoid"],
    *["kernel.dmesg_restrict", "kernel.kptr_restrict", "kernel.pid_max", "kernel.threads-max", "kernel.panic", "kernel.shmmax"],
    *["kernel.shmall", "kernel.hung_task_timeout_secs", "kernel.yama.ptrace_scope", "kernel.modules_disabled"],
    *["kernel.unprivileged_userns_clone", "fs.file-max", "fs.nr_open", "fs.aio-max-nr", "fs.inotify.max_user_watches"],
    *["fs.inotify.max_user_instances", "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default"],
    *["net.core.wmem_default", "net.core.netdev_max_backlog", "net.core.somaxconn", "net.core.default_qdisc"],
    *["net.core.optmem_max", "net.core.busy_poll", "net.core.busy_read", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"],
    *["net.ipv4.tcp_congestion_control", "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_window_scaling"],
    *["net.ipv4.ip_local_port_range", "net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.all.arp_ignore"],
    *["net.ipv4.conf.all.arp_announce", "net.ipv4.conf.default.rp_filter", "net.ipv6.conf.all.disable_ipv6"],
    *["net.ipv6.bindv6only", "net.netfilter.nf_conntrack_tcp_be_liberal", "net.netfilter.nf_conntrack_max"],
)

# Files of the driver's user space, its installers and its rivals; with the owning package of each.
_DRIVER_FILES = [
    "/usr/bin/nvidia-smi",
    "/usr/bin/nvidia-uninstall",
    "/usr/bin/nvidia-installer",
    "/usr/bin/nvidia-persistenced",
    "/usr/bin/nvidia-modprobe",
    "/usr/bin/nvidia-container-runtime",
    "/usr/bin/nvidia-ctk",
    "/usr/local/bin/nvidia-*",
    "/usr/bin/nvidia-gridd",
    "/etc/nvidia/gridd.conf",
    "/usr/lib/*/libnvidia-ml.so*",
    "/usr/lib64/libnvidia-ml.so*",
    "/usr/lib/libnvidia-ml.so*",
    "/usr/lib/*/nvidia/current/libnvidia-ml.so*",
    "/usr/lib/*/libcuda.so*",
    "/usr/lib64/libcuda.so*",
    "/usr/lib/*/nvidia/current/libcuda.so*",
    "/usr/lib/*/libnvidia-container.so*",
    "/usr/lib/*/libnccl.so*",
    "/usr/lib/*/libnccl-net*.so*",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net*.so*",
    "/usr/lib/*/libcudnn.so*",
    "/usr/local/cuda",
    "/usr/local/cuda-*",
    "/proc/driver/nvidia-nvswitch/devices/*",
    "/lib/firmware/nvidia/*",
    "/usr/src/nvidia-*",
]

# ------------------------------------------------------------------------------------------ all items

_SMI: dict[str, Any] = {"lane": "nvidia-smi", "when": "driver-loaded", "never_twice": True}

# They are started in this order: what takes longest comes first.
_COMMANDS: tuple[Item, ...] = (
    Item(
        "apt.policy",
        argv=("apt-cache", "policy", *POLICY, "@kernel-packages", _INSTALLED),
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
        "-o vg_name,vg_uuid,vg_size,vg_free,lv_name,lv_size,lv_attr,segtype,origin,pool_lv,data_percent,devices",
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
    Item(
        "units",
        argv=("systemctl", "show", "--no-pager", "-p", _PROPERTIES, *UNITS),
        when="systemd",
        limit=1 << 20,
    ),
    command(
        "units.failed", "systemctl list-units --no-pager --plain --no-legend --state=failed", when="systemd"
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
    builtin("nvidia.files", "nvidia_files", _DRIVER_FILES, lane="nvidia", seconds=NORMAL),
    builtin("cuda.installed", "cuda_installed", lane="nvidia"),
    builtin("cdi", "cdi", lane="nvidia"),
    builtin("disks.by-id", "disks_by_id", lane="disks"),
    builtin("disks.space", "space", lane="disks"),
    builtin("nvme.smart", "nvme_smart", seconds=15.0),
    builtin("sockets", "sockets"),
    builtin("firewall", "firewall", seconds=15.0),
    builtin("sshd.files", "sshd_files", lane="ssh-files"),
    builtin("sshd.effective", "sshd_effective", seconds=20.0),
    builtin("accounts", "accounts", seconds=20.0),
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
