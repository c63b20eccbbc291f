"""What the questions are about: names of files, packages, units and kernel settings. Data only."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FILES: tuple[str, ...] = (
    # the driver
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/sys/module/nvidia/version",
    "/etc/modprobe.d/gpu-provision.conf",
    "/etc/systemd/system/gpu-provision-clocks.service",
    "/etc/systemd/system/nvidia-persistenced.service.d/gpu-provision.conf",
    "/etc/modules-load.d/gpu-provision-fabric.conf",
    "/etc/nvidia-imex/nodes_config.cfg",
    "/etc/nvidia-container-runtime/config.toml",
    "/usr/local/lib/gpu-provision/clocks",
    "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env",
    "/var/log/nvidia-installer.log",
    # what this project writes for itself
    "/etc/gpu-provision/host.yml",
    "/etc/gpu-provision/manifest.json",
    "/etc/gpu-provision/clocks.json",
    "/etc/gpu-provision/nccl.env",
    "/etc/gpu-provision/bindings.json",
    "/etc/gpu-provision/threads.env",
    "/etc/gpu-provision/firewall.nft",
    # limits and the kernel
    "/etc/security/limits.d/90-gpu-provision.conf",
    "/etc/systemd/system.conf.d/gpu-provision.conf",
    "/etc/systemd/user.conf.d/gpu-provision.conf",
    "/etc/tmpfiles.d/gpu-provision-limits.conf",
    # communication
    "/etc/ld.so.conf.d/gpu-provision-cuda.conf",
    "/etc/profile.d/gpu-provision-cuda.sh",
    "/etc/environment.d/60-gpu-provision-cuda.conf",
    "/var/lib/dpkg/alternatives/cuda",
    "/etc/nccl.conf",
    "/opt/microsoft/ndv4/topo.xml",
    "/opt/microsoft/ndv4-topo.xml",
    "/opt/microsoft/ndv5/topo.xml",
    "/opt/microsoft/ndv5-topo.xml",
    "/etc/hosts",
    "/etc/resolv.conf",
    # ssh and firewall
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d/00-gpu-provision.conf",
    "/etc/cloud/cloud.cfg.d/zz-gpu-provision.cfg",
    "/etc/default/ssh",
    "/etc/sudoers.d/zz-gpu-provision",
    "/etc/nftables.conf",
    "/etc/default/ufw",
    "/etc/ufw/ufw.conf",
    "/etc/ufw/user.rules",
    "/etc/ufw/user6.rules",
    "/etc/systemd/system/gpu-provision-firewall.service",
    "/usr/local/lib/gpu-provision/docker-user",
    "/etc/fail2ban/jail.conf",
    "/etc/fail2ban/jail.d/00-gpu-provision.conf",
    "/etc/fail2ban/jail.d/zz-gpu-provision.local",
    # containers
    "/etc/docker/daemon.json",
    "/etc/default/docker",
    "/etc/apt/sources.list.d/gpu-provision-container-toolkit.sources",
    "/etc/apt/keyrings/gpu-provision-container-toolkit.asc",
    "/etc/systemd/system/gpu-provision-cdi.path",
    "/etc/systemd/system/gpu-provision-cdi.service",
    "/etc/systemd/system/gpu-provision-dev-char.service",
    "/etc/gpu-provision/docker.json",
    "/var/lib/gpu-provision/docker/unapplied",
    "/var/snap/docker/current/config/daemon.json",
    "/etc/containerd/config.toml",
    # storage
    "/etc/fstab",
    "/etc/crypttab",
    "/etc/mdadm/mdadm.conf",
    "/etc/mdadm.conf",
    # packages
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/gpu-provision.sources",
    "/etc/apt/sources.list.d/gpu-provision-nvidia.sources",
    "/etc/apt/keyrings/gpu-provision-nvidia.asc",
    "/etc/yum.repos.d/gpu-provision-nvidia.repo",
    "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-provision-nvidia",
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
    "/etc/sysctl.d/91-gpu-provision-profiling.conf",
    "/etc/modprobe.d/gpu-provision-profiling.conf",
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
    "/lib/modprobe.d/*nvidia*",
    "/usr/lib/modprobe.d/*nvidia*",
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
    "/var/lib/gpu-provision/disks/*.json",
    "/etc/profile.d/*cuda*",
    "/etc/default/grub.d/*",
    "/var/lib/gpu-provision/snapshots/*/about.json",
)
"""Files whose names are the host's own. `glob:PATTERN` lists those that are there."""

# Names for `apt-cache policy`. Whole names: its patterns cost a pass over all packages each (2.5 s for
# sixty of them where the names cost 0.1 s), and so does a name with a dot that is not found, which is
# taken for a regular expression: containerd.io is asked for where it is installed, and docker-ce tells
# whether docker.com's archive is there. Names that no archive has are simply not printed. The branches are
# those of NVIDIA's and Canonical's archives since 390.
_BRANCHES = words("""
    390 418 450 460 470 510 515 520 525 530 535 545 550 555 560 565 570 575 580 590 595 600 605 610 615
    620 625
""")
_BY_BRANCH = words("""
    nvidia-driver-{} nvidia-driver-{}-open nvidia-driver-{}-server nvidia-driver-{}-server-open
    nvidia-open-{} cuda-drivers-{} nvidia-driver-pinning-{} nvidia-tesla-{}-driver
    nvidia-legacy-{}xx-driver nvidia-dkms-{} nvidia-dkms-{}-open nvidia-dkms-{}-server
    nvidia-dkms-{}-server-open nvidia-headless-{} nvidia-headless-{}-open nvidia-headless-{}-server
    nvidia-headless-{}-server-open nvidia-headless-no-dkms-{}-server
    nvidia-headless-no-dkms-{}-server-open nvidia-utils-{} nvidia-utils-{}-server
    nvidia-compute-utils-{} nvidia-compute-utils-{}-server libnvidia-compute-{}
    libnvidia-compute-{}-server nvidia-fabricmanager-{} nvidia-imex-{} libnvidia-nscq-{}
    linux-modules-nvidia-{}-generic linux-modules-nvidia-{}-open-generic
    linux-modules-nvidia-{}-server-generic linux-modules-nvidia-{}-server-open-generic
    nvidia-kernel-source-{}-server nvidia-kernel-source-{}-server-open nvidia-kernel-common-{}-server
    libnvidia-cfg1-{}-server
""")
# Debian's older long-term branch, beside the one with the plain names.
_BY_TESLA_BRANCH = words("""
    nvidia-tesla-{}-kernel-dkms nvidia-tesla-{}-kernel-support nvidia-tesla-{}-alternative
    nvidia-tesla-{}-smi libnvidia-tesla-{}-ml1 libnvidia-tesla-{}-cfg1 libnvidia-tesla-{}-cuda1
    libnvidia-tesla-{}-ptxjitcompiler1 libnvidia-tesla-{}-pkcs11-openssl3
""")
_CUDA = [
    f"{major}-{minor}" for major, last in ((11, 8), (12, 9), (13, 9), (14, 2)) for minor in range(last + 1)
]
POLICY: tuple[str, ...] = (
    *words("""
        nvidia-driver nvidia-driver-open nvidia-open nvidia-kernel-dkms nvidia-open-kernel-dkms
        nvidia-kernel-open-dkms
        nvidia-dkms nvidia-dkms-open nvidia-kernel-source nvidia-open-kernel-source nvidia-kernel-support
        nvidia-kernel-common nvidia-driver-bin nvidia-driver-libs nvidia-driver-cuda nvidia-smi
        nvidia-persistenced nvidia-modprobe nvidia-settings nvidia-fabricmanager nvidia-fabric-manager
        nvidia-imex nvidia-alternative firmware-nvidia-gsp nvidia-firmware nvidia-container-toolkit
        nvidia-container-toolkit-base nvidia-container-runtime nvidia-docker2 libnvidia-container1
        libnvidia-container-tools nvidia-cuda-toolkit nvidia-cudnn libnvidia-compute libnvidia-nscq
        libnvsdm nvlsm libnvidia-ml1 libcuda1 cuda-drivers cuda-toolkit cuda-keyring libnccl2 libnccl-dev
        nvidia-open-kernel-support nvidia-legacy-check libnvidia-cfg1 libnvidia-ptxjitcompiler1
        libnvidia-pkcs11-openssl3 firmware-nvidia-tesla-535-gsp
        libcudnn8 libcudnn8-dev cudnn
    """),
    *(name.format(n) for n in (11, 12, 13, 14) for name in ("cuda-toolkit-{}", "cudnn9-cuda-{}")),
    *(name.format(n) for n in (11, 12, 13, 14) for name in ("libcudnn9-cuda-{}", "libcudnn9-dev-cuda-{}")),
    *(
        name.format(n)
        for n in (11, 12, 13, 14)
        for name in ("libcudnn9-static-cuda-{}", "libcudnn9-headers-cuda-{}")
    ),
    *(name.format(n) for n in _CUDA for name in ("cuda-toolkit-{}", "cuda-compat-{}")),
    *(name.format(branch) for branch in _BRANCHES for name in _BY_BRANCH),
    *(name.format(branch) for branch in ("470", "535") for name in _BY_TESLA_BRANCH),
    *(f"cuda-drivers-{branch}" for branch in (440, 455, 465, 495)),
    *words("""
        datacenter-gpu-manager datacenter-gpu-manager-4-core datacenter-gpu-manager-4-cuda12
        datacenter-gpu-manager-4-cuda13 nsight-systems nsight-systems-cli nsight-compute docker.io
        docker-ce docker-ce-cli docker-cli containerd dkms linux-image-amd64 linux-headers-amd64
        linux-image-arm64 linux-headers-arm64 linux-image-cloud-amd64 linux-headers-cloud-amd64
        linux-image-generic linux-headers-generic linux-generic linux-aws linux-azure linux-gcp
        linux-nvidia linux-perf linux-tools-generic openssh-server nftables ufw fail2ban
        unattended-upgrades needrestart chrony systemd-timesyncd sysstat atop numactl nvme-cli hwloc
        hwloc-nox fio mdadm xfsprogs e2fsprogs lvm2 smartmontools pciutils infiniband-diags rdma-core
        ibverbs-utils prometheus-node-exporter mokutil python3 python3-apt sudo
    """),
)
INSTALLED = "@installed:.*(?:nvidia|cuda|cudnn|nccl|nvlsm|nvsdm|datacenter-gpu|nsight|docker|containerd)"

UNITS: tuple[str, ...] = words("""
    nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service nvidia-dcgm.service
    dcgm.service nvidia-cdi-refresh.service nvidia-cdi-refresh.path nvidia-powerd.service
    nvidia-suspend.service gpu-provision-clocks.service gpu-provision-cdi.path
    gpu-provision-cdi.service gpu-provision-dev-char.service docker.service docker.socket
    containerd.service snap.docker.dockerd.service podman.socket kubelet.service slurmd.service
    k3s.service k3s-agent.service ssh.service ssh.socket sshd.service sshd.socket nftables.service ufw.service
    firewalld.service netfilter-persistent.service gpu-provision-firewall.service fail2ban.service
    unattended-upgrades.service
    apt-daily.timer apt-daily-upgrade.timer apt-daily-upgrade.service dnf-automatic.timer
    packagekit.service cloud-init.service systemd-timesyncd.service chrony.service chronyd.service
    ntp.service ntpsec.service fstrim.timer mdmonitor.service smartmontools.service smartd.service
    sysstat.service sysstat-collect.timer sysstat-summary.timer
    atop.service prometheus-node-exporter.service irqbalance.service tuned.service
    power-profiles-daemon.service cpufrequtils.service opensm.service openibd.service
    multipathd.service iscsid.service rpcbind.service gpu-provision-commit-confirm.timer
""")

PROPERTIES = (
    "Id,Names,LoadState,LoadError,ActiveState,SubState,UnitFileState,UnitFilePreset,Result,ExecStart,ExecMainStatus,"
    "FragmentPath,DropInPaths,Listen,NeedDaemonReload,ActiveEnterTimestamp,MainPID,TriggeredBy,NextElapseUSecRealtime"
)

SYSCTLS: tuple[str, ...] = words("""
    vm.swappiness vm.dirty_ratio vm.dirty_background_ratio vm.dirty_bytes vm.dirty_background_bytes
    vm.zone_reclaim_mode vm.nr_hugepages vm.overcommit_memory vm.max_map_count vm.min_free_kbytes
    vm.compaction_proactiveness vm.vfs_cache_pressure kernel.numa_balancing kernel.perf_event_paranoid
    kernel.dmesg_restrict kernel.kptr_restrict kernel.pid_max kernel.threads-max kernel.panic
    kernel.shmmax kernel.shmall kernel.hung_task_timeout_secs kernel.yama.ptrace_scope
    kernel.modules_disabled kernel.unprivileged_userns_clone fs.file-max fs.nr_open fs.aio-max-nr
    fs.inotify.max_user_watches fs.inotify.max_user_instances net.core.rmem_max net.core.wmem_max
    net.core.rmem_default net.core.wmem_default net.core.netdev_max_backlog net.core.somaxconn
    net.core.default_qdisc net.core.optmem_max net.core.busy_poll net.core.busy_read net.ipv4.tcp_rmem
    net.ipv4.tcp_wmem net.ipv4.tcp_congestion_control net.ipv4.tcp_mtu_probing
    net.ipv4.tcp_window_scaling net.ipv4.ip_local_port_range net.ipv4.ip_forward
    net.ipv4.conf.all.rp_filter net.ipv4.conf.all.arp_ignore net.ipv4.conf.all.arp_announce
    net.ipv4.conf.default.rp_filter net.ipv6.conf.all.disable_ipv6 net.ipv6.bindv6only
    net.netfilter.nf_conntrack_tcp_be_liberal net.netfilter.nf_conntrack_max
""")

# Files of the driver's user space, its installers and its rivals; with the owning package of each.
DRIVER_FILES: tuple[str, ...] = (
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
)
