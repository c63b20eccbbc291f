"""Persistence mode: kept by nvidia-persistenced, which a packaged unit may start with its work off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts.known import Absent, Unknown
from .gpu_unit import DAEMON, DROP_IN, OWNED
from .wanted import File, Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..facts import Facts
    from .clocks import Setting
    from .gpu_named import Named

# Ubuntu's packaged unit starts the daemon with this, so that "active" says nothing about persistence.
_OFF, _ON = "--no-persistence-mode", "--persistence-mode"


@dataclass(frozen=True)
class SettingsWanted(Wanted):
    """`restart`: units that run and whose work is undone all the same.

    `stop_first`: units whose files change, so that what they gave the cards is taken back while the files
    still say how. `legacy_off`: persistence was switched on past the daemon (`nvidia-smi -pm 1`) and has to
    be switched off the same way. `owned` has the files by the unit that reads them. `settings` has the clocks
    that each GPU is given, or why it cannot be, and `named` what else, by its index and the variable.
    `locked` is True where only a person on the host can lift the refusal.
    """

    restart: tuple[str, ...] = ()
    stop_first: tuple[str, ...] = ()
    legacy_off: bool = False
    owned: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OWNED)
    settings: tuple[Setting, ...] = ()
    named: Mapping[int, Mapping[str, Named]] = field(default_factory=dict)
    locked: bool = False


def daemon(facts: Facts, on: bool) -> SettingsWanted:
    """The daemon's unit and our drop-in, or why there can be none."""
    units = facts.units
    if isinstance(units, Unknown):
        return SettingsWanted(refused=f"the state of systemd's units is not known: {units.reason}")
    if isinstance(units, Absent):
        return SettingsWanted(refused="this host has no systemd, which is what keeps settings over a reboot")
    unit = units.get(DAEMON)
    if unit is None or not unit.exists:
        if on:
            return SettingsWanted(refused=f"{DAEMON} is not installed; the role nvidia_driver brings it")
        legacy = _persistent(facts, True)
        return SettingsWanted(files=(File(DROP_IN, None),), legacy_off=legacy, steps=_legacy_steps(legacy))
    if not on:
        return SettingsWanted(
            files=(File(DROP_IN, None),),
            units=switched_off(facts, DAEMON),
            why=(Why("persistence", "off, so that the driver lets go of idle GPUs"),),
            legacy_off=not unit.runs and _persistent(facts, True),
            steps=_legacy_steps(not unit.runs and _persistent(facts, True)),
        )
    if unit.load == "masked":
        # Whoever did that meant it; and what a masked unit would start cannot be read.
        return SettingsWanted(
            refused=f"{DAEMON} is masked, so that nothing can start it: run `systemctl unmask {DAEMON}` "
            "there, or set gpu_settings_persistence: false",
            locked=True,
        )
    why = Why(
        "persistence",
        "kept by the daemon, also after a reboot",
        "https://docs.nvidia.com/deploy/driver-persistence/",
    )
    return SettingsWanted(
        files=(File(DROP_IN, _drop_in(facts, unit.exec_start)),),
        units=(Unit(DAEMON, enabled=True, active=True),),
        why=(why,),
        restart=(DAEMON,) if unit.runs and _persistent(facts, False) else (),
    )


def _legacy_steps(legacy: bool) -> tuple[str, ...]:
    return ("switch persistence off (nvidia-smi -pm 0)",) if legacy else ()


def switched_off(facts: Facts, name: str) -> tuple[Unit, ...]:
    """A unit stopped and disabled, where the host has it at all."""
    units = facts.units
    if isinstance(units, Unknown | Absent) or name not in units or not units[name].exists:
        return ()
    return (Unit(name, enabled=False, active=False),)


def _persistent(facts: Facts, value: bool) -> bool:
    """Whether any GPU that answers has persistence in that state."""
    return not isinstance(facts.smi, Unknown) and any(gpu.persistence is value for gpu in facts.smi.gpus)


def _drop_in(facts: Facts, exec_start: tuple[str, ...]) -> str | None:
    """Our drop-in where the packaged unit switches persistence off; it stays once it is there."""
    there = facts.file(DROP_IN)
    if isinstance(there, Absent | Unknown) and not any(_OFF in line.split() for line in exec_start):
        return None
    lines = [" ".join(_ON if word == _OFF else word for word in line.split()) for line in exec_start]
    return "\n".join(
        [
            "# Written by gpu-provision (role gpu_settings): the packaged unit switches persistence off.",
            "[Service]",
            "ExecStart=",
            *(f"ExecStart={line}" for line in lines),
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )
