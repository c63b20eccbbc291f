"""Whether a host has NVSwitches that it has to manage itself: the fabric manager is for those hosts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.known import Unknown
from .tables import catalog

if TYPE_CHECKING:
    from ..facts import Facts

BRIDGES, PORTS, OUTSIDE, NONE = "bridges", "ports", "outside", "none"
MANAGED_HERE = (BRIDGES, PORTS)


def fabric_of(facts: Facts) -> str | Unknown:
    """How the NVSwitches of a host are managed.

    `bridges`: they are devices of its bus (up to Hopper). `ports`: through ConnectX bridges of its own
    (NVLink 5 boards). `outside`: by themselves, for a whole rack. `none`: there are none, or they are
    another machine's.
    """
    switches, gpus = facts.nvswitches, facts.nvidia_gpus_on_bus
    if isinstance(switches, Unknown):
        return switches
    if isinstance(gpus, Unknown):
        return gpus
    if switches:
        return BRIDGES
    if not gpus:
        return NONE
    boards = {_board(gpu.device) for gpu in gpus}
    if boards == {OUTSIDE}:
        return OUTSIDE
    if boards != {PORTS}:
        return NONE
    rdma, virtualization = facts.rdma, facts.virtualization
    seen = not isinstance(rdma, Unknown) and any(port.switch_management for port in rdma)
    is_vm = not isinstance(virtualization, Unknown) and virtualization.is_vm
    # A virtual machine that was given GPUs without their switches has nothing to manage.
    return PORTS if seen or (len(gpus) > 1 and not is_vm) else NONE


def _board(device: str) -> str:
    rows = catalog().raw["packages"]["fabric_boards"]
    return next((str(row["managed"]) for row in rows if device.lower() in row["devices"]), NONE)
