"""All builtins by name, and the answer where one of them fails."""

import errno
import time

from .accounts import accounts, other_accounts
from .cuda import cuda_conda, cuda_installed
from .files import file, tail
from .firewall import firewall
from .hardware import cpu, dmi, pci, secure_boot
from .kernels import kernels, lsmod
from .network import net, rdma, sockets
from .nvidia import cdi, docker_started, nvidia_devices, nvidia_files, nvidia_processes
from .packages import apt_holds, apt_lists, package_locks
from .sshd import sshd_effective, sshd_files
from .storage import disks_by_id, nvme_smart, space
from .surfaces import surfaces
from .system import clock, limits, rights, sysctl
from .unit_files import unit_files
from .units import units

MYPY = False
if MYPY:
    from typing import Any, Callable, Dict

BUILTINS: "Dict[str, Callable[..., Dict[str, Any]]]" = {
    "file": file,
    "tail": tail,
    "pci": pci,
    "kernels": kernels,
    "lsmod": lsmod,
    "secure_boot": secure_boot,
    "cpu": cpu,
    "nvidia_devices": nvidia_devices,
    "nvidia_files": nvidia_files,
    "nvidia_processes": nvidia_processes,
    "cuda_installed": cuda_installed,
    "cuda_conda": cuda_conda,
    "cdi": cdi,
    "docker_started": docker_started,
    "disks_by_id": disks_by_id,
    "space": space,
    "surfaces": surfaces,
    "nvme_smart": nvme_smart,
    "rdma": rdma,
    "net": net,
    "sockets": sockets,
    "firewall": firewall,
    "sshd_files": sshd_files,
    "sshd_effective": sshd_effective,
    "accounts": accounts,
    "other_accounts": other_accounts,
    "apt_holds": apt_holds,
    "apt_lists": apt_lists,
    "package_locks": package_locks,
    "sysctl": sysctl,
    "limits": limits,
    "clock": clock,
    "dmi": dmi,
    "rights": rights,
    "units": units,
    "unit_files": unit_files,
}


def answer_builtin(unit: "Dict[str, Any]") -> "Dict[str, Any]":
    began = time.time()
    try:
        answer = BUILTINS[unit["builtin"]](*unit.get("args", []))
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM):
            return {"denied": True}
        return {"not_asked": "it could not be read: %s" % e}
    except Exception as e:  # one builtin's defect must not take the others with it, and it must show
        return {"not_asked": "the collector failed at it: %s: %s" % (type(e).__name__, e)}
    if "rc" in answer and "seconds" not in answer:
        answer["seconds"] = round(time.time() - began, 3)
    return answer
