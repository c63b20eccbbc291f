"""Role gpu_settings: persistence mode by the daemon, clocks and what else is named by a unit of ours.

None of it survives a reboot by itself: `nvidia-smi -pm` and clocks are lost with the driver's state, and the
driver forgets clocks as soon as the last client closes where persistence is off (nvidia-smi(1)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from . import clocks, gpu_named
from .clocks import Setting
from .gpu_persistence import SettingsWanted, daemon, switched_off
from .gpu_unit import CLOCKS_UNIT, DAEMON, DROP_IN, SCRIPT, UNIT_FILE, UNIT_TEXT, script
from .wanted import File, Unit, Why

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile
    from .gpu_named import Named

__all__ = ["CLOCKS_UNIT", "DAEMON", "DROP_IN", "SCRIPT", "UNIT_FILE", "SettingsWanted", "undone", "wanted"]


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> SettingsWanted:
    """Files, units and per-GPU values. The stack plays no part: the cards tell what they support."""
    persistence, asked = profile["gpu_settings_persistence"], profile["gpu_settings_clocks"]
    if (said := clocks.problem(asked) or gpu_named.problem(profile)) is not None:
        return SettingsWanted(refused=said)
    gpus = facts.nvidia_gpus_on_bus
    if isinstance(gpus, Unknown):
        return SettingsWanted(refused=f"the devices on the bus are not known: {gpus.reason}")
    if not gpus:
        return SettingsWanted(refused="there is no NVIDIA GPU on this host's bus")
    if asked != "none" and not persistence:
        return SettingsWanted(
            refused="gpu_settings_clocks needs gpu_settings_persistence: true, as the driver forgets clocks "
            "when its last client closes; set gpu_settings_clocks: none, or persistence on"
        )
    if gpu_named.any_named(profile) and not persistence:
        given = ", ".join(name for name in gpu_named.VARIABLES if profile[name] is not None)
        return SettingsWanted(
            refused=f"{given}: the unit that gives them to the cards at each boot needs "
            "gpu_settings_persistence: true"
        )
    first = daemon(facts, persistence)
    return first if first.refused else _with_settings(first, facts, profile)


def _with_settings(first: SettingsWanted, facts: Facts, profile: Profile) -> SettingsWanted:
    asked = profile["gpu_settings_clocks"]
    none = () if asked != "none" else (Why("clocks", "left to the driver"),)
    if none and not gpu_named.any_named(profile):
        return _without_unit(first, facts, none)
    if isinstance(facts.smi, Unknown):
        said = f"the driver does not answer, so nothing of the cards is known: {facts.smi.reason}"
        return SettingsWanted(refused=said)
    cards = facts.smi.gpus
    found = [] if none else [clocks.setting(gpu, asked) for gpu in cards]
    others = {gpu.index: gpu_named.named(gpu, profile) for gpu in cards}
    refused = [f"gpu_settings_clocks: {said}" for said in found if isinstance(said, str)]
    refused += [f"gpu_settings_power_limit: {said}" for said in others.values() if isinstance(said, str)]
    if refused:
        return SettingsWanted(refused=" ".join(refused))
    settings = tuple(s for s in found if isinstance(s, Setting))
    named = {index: given for index, given in others.items() if isinstance(given, dict)}
    why = (*none, *(_why(s) for s in settings), *_reasons(named))
    known = replace(first, settings=settings, named=named)
    names = {gpu.index: clocks.name_of(gpu) for gpu in cards}
    set_ = [(names[i], argv) for i, by in named.items() for given in by.values() for argv in given.set]
    set_ += [(s.gpu, argv) for s in settings for argv in s.set]
    if not set_:
        return _without_unit(known, facts, why)
    reset = [(s.gpu, argv) for s in settings for argv in s.reset]
    reset += [(names[i], argv) for i, by in named.items() for given in by.values() for argv in given.reset]
    return _with_unit(known, facts, script(set_, reset), why)


def _without_unit(known: SettingsWanted, facts: Facts, why: tuple[Why, ...]) -> SettingsWanted:
    return replace(
        _stepping(known, known.restart),
        files=(*known.files, File(UNIT_FILE, None), File(SCRIPT, None, mode="0755")),
        units=(*known.units, *switched_off(facts, CLOCKS_UNIT)),
        why=(*known.why, *why),
    )


def _with_unit(known: SettingsWanted, facts: Facts, text: str, why: tuple[Why, ...]) -> SettingsWanted:
    others = [given for by_variable in known.named.values() for given in by_variable.values()]
    again = bool(undone(facts, known.settings) or any(given.wrong for given in others))
    there = facts.file(SCRIPT)
    return replace(
        _stepping(known, (*known.restart, *((CLOCKS_UNIT,) if again else ()))),
        files=(*known.files, File(SCRIPT, text, mode="0755"), File(UNIT_FILE, UNIT_TEXT)),
        units=(*known.units, Unit(CLOCKS_UNIT, enabled=True, active=True)),
        stop_first=(CLOCKS_UNIT,) if isinstance(there, str) and there != text else (),
        why=(*known.why, *why),
    )


def _stepping(known: SettingsWanted, restart: tuple[str, ...]) -> SettingsWanted:
    steps = tuple(f"restart {unit}, whose work is undone" for unit in restart)
    return replace(known, restart=restart, steps=(*known.steps, *steps))


def undone(facts: Facts, settings: tuple[Setting, ...]) -> tuple[str, ...]:
    """What can be read back and is not as set: only application clocks, as no field shows a lock."""
    if isinstance(facts.smi, Unknown):
        return ()
    told = []
    given = {setting.index: setting for setting in settings if setting.application}
    for gpu in facts.smi.gpus:
        setting, now = given.get(gpu.index), gpu.application_clocks
        if setting and (now.graphics, now.memory) != (setting.graphics, setting.memory):
            told.append(
                f"GPU {gpu.index}: application clocks are {now.graphics} (graphics) and {now.memory} MHz"
            )
    return tuple(told)


def _why(setting: Setting) -> Why:
    if setting.unsupported and not setting.set:
        return Why(f"clocks of GPU {setting.index}", setting.unsupported)
    kind = "application clocks" if setting.application else "locked clocks"
    values = f"graphics {setting.graphics or 'free'}, memory {setting.memory or 'free'} MHz"
    more = f"; {setting.unsupported}" if setting.unsupported else ""
    return Why(f"clocks of GPU {setting.index}", f"{kind}, {values}{more}", "nvidia-smi(1)")


def _reasons(named: Mapping[int, Mapping[str, Named]]) -> Iterator[Why]:
    for index, by_variable in named.items():
        for given in by_variable.values():
            for text in (*(f"nvidia-smi {' '.join(argv)}" for argv in given.set), *given.unsupported):
                yield Why(f"settings of GPU {index}", text, "nvidia-smi(1)")
