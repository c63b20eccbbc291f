"""What nvidia-smi tells of a GPU.

Every value may be Unknown: Unsupported (N/A, deprecated, or a driver too old to report it), or else
the GPU's own error or a damaged answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .known import Maybe


@record
class Clocks:
    """MHz."""

    graphics: Maybe[int]
    memory: Maybe[int]
    sm: Maybe[int]


@record
class Mode:
    """A mode that a reboot or reset may change: what holds now, and what is asked for."""

    current: Maybe[bool]
    pending: Maybe[bool]


@record
class MigDevice:
    """One slice of a GPU; memory in MiB."""

    index: Maybe[int]
    gpu_instance: Maybe[int]
    memory_mib: Maybe[int]


@record
class Mig:
    mode: Mode
    devices: tuple[MigDevice, ...]


@record
class EccCounts:
    """Errors since the last driver load (volatile) or in the card's life (aggregate)."""

    sram_correctable: Maybe[int]
    sram_uncorrectable: Maybe[int]
    dram_correctable: Maybe[int]
    dram_uncorrectable: Maybe[int]
    sram_threshold_exceeded: Maybe[bool]


@record
class Ecc:
    mode: Mode
    volatile: EccCounts
    aggregate: EccCounts
    channel_repair_pending: Maybe[bool]
    tpc_repair_pending: Maybe[bool]
    unrepairable_memory: Maybe[bool]


@record
class RetiredPages:
    """Pages taken out of use before Ampere; `pending` waits for a reboot."""

    single_bit: Maybe[int]
    double_bit: Maybe[int]
    pending: Maybe[bool]


@record
class RemappedRows:
    """Rows replaced since Ampere; `pending` waits for a reset, `failure` means that no spare row was left."""

    correctable: Maybe[int]
    uncorrectable: Maybe[int]
    pending: Maybe[bool]
    failure: Maybe[bool]


@record
class PcieLink:
    """Generations and lane counts. An idle card lowers `generation`; `replays` counts repeated packets."""

    generation: Maybe[int]
    generation_max: Maybe[int]
    generation_device_max: Maybe[int]
    width: Maybe[int]
    width_max: Maybe[int]
    replays: Maybe[int]


@record
class Throttle:
    """Reasons for clocks below what was asked, under one set of names for all driver versions.

    `active` holds those that act now (`hw_thermal_slowdown`); `counters` their microseconds since
    the driver was loaded (driver 580 and newer).
    """

    active: frozenset[str]
    counters: Mapping[str, int]


@record
class Fabric:
    """State of the NVLink fabric; `health` has only what the driver reports for this board."""

    state: Maybe[str]
    status: Maybe[str]
    clique: Maybe[str]
    cluster: Maybe[str]
    health: Mapping[str, str]


@record
class Temperature:
    """Degrees Celsius; `margin` is the distance to the slowdown threshold where the board reports one."""

    gpu: Maybe[int]
    memory: Maybe[int]
    slowdown: Maybe[int]
    margin: Maybe[int]


@record
class Power:
    """Watt."""

    draw: Maybe[float]
    limit: Maybe[float]
    default: Maybe[float]
    minimum: Maybe[float]
    maximum: Maybe[float]


@record
class Process:
    """One user of the GPU; memory in MiB."""

    pid: Maybe[int]
    name: Maybe[str]
    kind: Maybe[str]
    memory_mib: Maybe[int]


@record
class Gpu:
    """One GPU as `nvidia-smi -q -x` has it. `bus_id` is `0000:06:00.0`, `pci_id` is `10de:20b0`.

    `recovery_action` is the driver's own word (`None`, `Reset`, `Reboot`, `Drain P2P`, `Drain and
    Reset`); before it existed, it is derived from the reset status. `errors` holds each error text
    that stands where a value should, `GPU is lost` among them; one by itself is no fault
    (`Insufficient Permissions` shows where nvidia-smi ran without rights).
    """

    index: int
    name: Maybe[str]
    uuid: Maybe[str]
    serial: Maybe[str]
    bus_id: str
    pci_id: Maybe[str]
    subsystem_id: Maybe[str]
    architecture: Maybe[str]
    minor: Maybe[int]
    module_id: Maybe[int]
    vbios: Maybe[str]
    gsp_firmware: Maybe[str]
    virtualization: Maybe[str]
    addressing_mode: Maybe[str]
    compute_mode: Maybe[str]
    performance_state: Maybe[str]
    persistence: Maybe[bool]
    memory_mib: Maybe[int]
    memory_used_mib: Maybe[int]
    utilization: Maybe[int]
    clocks: Clocks
    application_clocks: Clocks
    default_application_clocks: Clocks
    max_clocks: Clocks
    supported_clocks: Maybe[Mapping[int, tuple[int, ...]]]
    mig: Mig
    ecc: Ecc
    retired_pages: RetiredPages
    remapped_rows: RemappedRows
    recovery_action: Maybe[str]
    fabric: Fabric
    throttle: Maybe[Throttle]
    pcie: PcieLink
    temperature: Temperature
    power: Power
    processes: tuple[Process, ...]
    errors: tuple[str, ...]

    @property
    def lost(self) -> bool:
        return any("lost" in error.lower() for error in self.errors)


@record
class SmiReport:
    """All GPUs that answered. `attached` is the driver's own count; `notes` is text around the document."""

    driver_version: Maybe[str]
    cuda_version: Maybe[str]
    attached: Maybe[int]
    gpus: tuple[Gpu, ...]
    notes: tuple[str, ...]
