"""What hosts of one group have in common where all is well: values that an audit lays side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from ..planners import nccl, nccl_file
from ..planners.nccl_network import unfit
from ..planners.nccl_release import nccl_release

if TYPE_CHECKING:
    from ..facts import Facts

# NCCL's ranks have to be of one release; frames larger than a peer's MTU never arrive.
RELEASE, MTU = "NCCL's release", "MTU of NCCL's interface"
DRIVER, KERNEL = "driver release", "kernel release"


def traits(facts: Facts) -> dict[str, str]:
    """The host's values by name. What it does not have, or does not tell, is left out."""
    loaded, kernel = facts.loaded_driver, facts.running_kernel
    found = {
        RELEASE: nccl_release(facts),
        MTU: _mtu(facts),
        DRIVER: None if isinstance(loaded, Unknown | Absent) else loaded.version,
        KERNEL: None if isinstance(kernel, Unknown) else kernel,
    }
    return {name: value for name, value in found.items() if value is not None}


def _mtu(facts: Facts) -> str | None:
    text, interfaces = facts.file(nccl_file.PATH), facts.interfaces
    if not isinstance(text, str) or isinstance(interfaces, Unknown):
        return None
    value = nccl_file.effective(text).get("NCCL_SOCKET_IFNAME")
    used = [i for i in interfaces if value is not None and nccl.matches(value, i.name) and unfit(i) is None]
    sizes = {i.mtu for i in used if i.mtu is not None}
    return str(min(sizes)) if sizes else None
