"""What one GPU reads at this moment: its card, the settings made since boot, the faults switched on, and the
driver's branch.
"""

from __future__ import annotations

from typing import Any

from .fabric import managed
from .world import World, relation

NA = "N/A"
DEPRECATED = "Requested functionality has been deprecated"
LOST = "GPU is lost"

CUDA = {
    418: "10.1",
    440: "10.2",
    450: "11.0",
    455: "11.1",
    460: "11.2",
    465: "11.3",
    470: "11.4",
    495: "11.5",
    510: "11.6",
    515: "11.7",
    520: "11.8",
    525: "12.0",
    530: "12.1",
    535: "12.2",
    545: "12.3",
    550: "12.4",
    555: "12.5",
    560: "12.6",
    565: "12.7",
    570: "12.8",
    575: "12.9",
    580: "13.0",
    590: "13.1",
    595: "13.2",
    610: "13.3",
    615: "13.4",
    620: "13.5",
}
"""Driver branch -> the CUDA version it reports (docs.nvidia.com, supported drivers and CUDA toolkit
versions).
"""


class Gpu:
    """One GPU as the loaded driver sees it. Texts are as nvidia-smi prints them, clocks and memory as numbers
    in MHz and MiB.
    """

    def __init__(self, world: World, gpu: dict[str, Any], state: dict[str, Any], minor: int) -> None:
        self.world, self.gpu, self.state, self.minor = world, gpu, state, minor
        self.card: dict[str, Any] = world.card(gpu)
        self.index: int = gpu["index"]
        self.version: str = state["loaded"]["version"]
        self.branch = int(self.version.split(".")[0])
        self.key = str(self.index)
        self._faults = {name for name, on in world.faults().items() if not on or self.index in on}

    def fault(self, name: str) -> bool:
        return name in self._faults

    def can(self, what: str) -> bool:
        return what in self.card["supports"]

    @property
    def bus_id(self) -> str:
        return f"0000{self.gpu['address'].upper()}"

    @property
    def bus(self) -> int:
        return int(self.gpu["address"][5:7], 16)

    @property
    def product(self) -> str:
        name: str = self.card["name"]
        return name

    @property
    def persistence(self) -> bool:
        return bool(self.state["persistence"].get(self.key))

    # Clocks, in MHz.

    @property
    def memory_clocks(self) -> list[dict[str, Any]]:
        spans: list[dict[str, Any]] = self.card["clocks"]["memory"]
        return spans

    def graphics_clocks(self, memory: int) -> list[int]:
        """The graphics clocks that go with a memory clock, from high to low; empty for a memory clock the
        card lacks.
        """
        for span in self.memory_clocks:
            if span["memory"] == memory:
                steps = int((span["max"] - span["min"]) / span["step"]) + 1
                return [int(span["max"] - step * span["step"]) for step in range(steps)]
        return []

    @property
    def clock_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.state["clocks"].get(self.key, {})
        return settings

    @property
    def application_clocks_deprecated(self) -> bool:
        """From branch 590 on application clocks are neither read nor set."""
        return self.branch >= 590 or self.fault("clocks-deprecated")

    def application_clocks(self, *, default: bool = False) -> list[int] | None:
        """[memory, graphics], or None where the card has none."""
        if not self.can("application_clocks"):
            return None
        own = self.card["clocks"]["default"]
        set_to: list[int] = self.clock_settings.get("application", [own["memory"], own["graphics"]])
        return [own["memory"], own["graphics"]] if default else set_to

    def current_clocks(self) -> dict[str, int]:
        """Idle clocks, held within what is locked."""
        idle, settings = self.card["clocks"]["idle"], self.clock_settings
        graphics = _within(idle["graphics"], settings.get("graphics"))
        memory = _within(idle["memory"], settings.get("memory"))
        return {
            "graphics": graphics,
            "sm": graphics,
            "memory": memory,
            "video": max(idle["video"], min(graphics, self.card["clocks"]["video"]) * 3 // 4),
        }

    def max_clocks(self) -> dict[str, int]:
        top = self.memory_clocks[0]
        return {
            "graphics": top["max"],
            "sm": top["max"],
            "memory": top["memory"],
            "video": self.card["clocks"]["video"],
        }

    # Health.

    def ecc_counts(self) -> dict[str, int]:
        return {
            "sram_correctable": 0,
            "sram_uncorrectable": 0,
            "dram_correctable": 0,
            "dram_uncorrectable": 5 if self.fault("ecc-uncorrectable") else 0,
        }

    def remapped(self) -> dict[str, str] | None:
        """Counts and flags of remapped memory rows; None for cards that remap none."""
        if not self.card.get("remap_banks"):
            return None
        pending, failed = self.fault("remap-pending"), self.fault("remap-failure")
        return {
            "correctable": "0",
            "uncorrectable": "1" if pending or failed else "0",
            "pending": "Yes" if pending else "No",
            "failure": "Yes" if failed else "No",
        }

    def recovery_action(self) -> str:
        return "Reset" if self.fault("recovery-reset") or self.fault("remap-pending") else "None"

    def throttled(self) -> bool:
        return self.fault("throttle")

    def temperature(self) -> int:
        now: int = self.card["temperature"]["now"]
        return now + 55 if self.throttled() else now

    def link_width(self) -> int:
        width: int = self.card["pci"]["width"]
        return width // 4 if self.fault("pcie-width") else width

    def power_limit(self) -> float:
        return float(self.state["power"].get(self.key, self.card["power"]["default"]))

    def ecc_mode(self) -> tuple[bool, bool] | None:
        """(current, pending); None for a card without ECC. What is set counts from the next load on."""
        if not self.card["ecc"]:
            return None
        loaded = self.state["loaded"].get("inforom", {}).get(self.key, {})
        return loaded.get("ecc", True), self.world.inforom().get(self.key, {}).get("ecc", True)

    @property
    def keeps_mig(self) -> bool:
        """Ampere cards keep the mode over a reboot and take it after a reset; newer ones take it at once and
        lose it (NVIDIA MIG User Guide, "Enable MIG Mode").
        """
        return bool(self.card["architecture"] == "Ampere")

    def mig_mode(self) -> tuple[bool, bool] | None:
        """(current, pending); None for a card that cannot be sliced."""
        if not self.can("mig"):
            return None
        now = self.state["mig"].get(self.key)
        if now is None:
            loaded = self.state["loaded"].get("inforom", {}).get(self.key, {})
            now = self.keeps_mig and loaded.get("mig", False)
        later = self.world.inforom().get(self.key, {}).get("mig", False) if self.keeps_mig else now
        return bool(now), bool(later)

    def compute_mode(self) -> str:
        """As nvidia-smi prints it."""
        return str(self.state["compute"].get(self.key, "Default"))

    def fabric(self) -> tuple[str, str]:
        """(state, status) of GPUs that a fabric manager has to bring up; it is on boards with NVSwitches from
        Hopper on.
        """
        if not self.can("fabric") or len([each for each in self.links() if each]) < 4:
            return NA, NA
        fifth = self.card["architecture"] not in ("Hopper", "Ampere")
        return ("Completed", "Success") if managed(self.world, self.version, fifth) else ("In Progress", NA)

    # NVLink.

    def links(self) -> list[int]:
        """NVLinks to each GPU of the machine, by index."""
        row: list[int] = self.world.machine["links"][self.index]
        if self.fault("nvlink-down"):
            return [0] * len(row)
        return [0 if self.world.has_fault("nvlink-down", other) else count for other, count in enumerate(row)]

    def joined(self, other: Gpu) -> str:
        links = self.links()[other.index]
        return f"NV{links}" if links else relation(self.gpu["slot"], other.gpu["slot"])


def _within(clock: int, lock: list[int] | None) -> int:
    return clock if lock is None else min(max(clock, lock[0]), lock[1])
