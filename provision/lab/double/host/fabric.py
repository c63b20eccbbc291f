"""Whether the NVSwitches have been set up: what GPUs of such boards say of their fabric hangs on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World

SERVICE = "sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs"
SUBNET_MANAGER = "opt/nvidia/nvlsm/sbin/nvlsm"
# From R620 on the fabric manager has releases of its own (siderolabs/extensions, the R620 package split).
STANDALONE = 620
_PACKAGE = re.compile(
    r"^Package: nvidia-fabricmanager(?:-\d+)?\nStatus: \w+ ok installed\n(?:.+\n)*?Version: (\S+)", re.M
)


def managed(world: World, driver: str, fifth: bool) -> bool:
    """Whether the fabric manager's service runs, at the driver's release. On NVLink 5 (`fifth`) it needs a
    subnet manager.
    """
    try:
        running = (world.root / SERVICE).read_text().split()
    except OSError:
        return False
    if not running or (fifth and not (world.root / SUBNET_MANAGER).exists()):
        return False
    status = world.root / "var/lib/dpkg/status"
    found = _PACKAGE.search(status.read_text()) if status.exists() else None
    if found is None:
        return False
    return int(driver.split(".")[0]) >= STANDALONE or found[1].split("-")[0].split(":")[-1] == driver
