"""Power limit, compute mode, ECC and MIG of each GPU: left alone unless the profile names them.

A limit and a compute mode are lost with the driver's state; ECC is kept by the card and counts from the
next boot on; MIG is kept by Ampere cards and lost by newer ones at a reboot (nvidia-smi(1); NVIDIA MIG User
Guide, "Enable MIG Mode"). So all that is named is given to the card again at each boot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..facts.known import Unknown, Unsupported

if TYPE_CHECKING:
    from ..facts.known import Maybe
    from ..facts.smi_model import Gpu, Mode
    from ..profile.model import Profile

# nvidia-smi(1), --compute-mode: numbers of the modes. What nvidia-smi prints is the name in another case.
COMPUTE_MODES = {"default": "0", "prohibited": "2", "exclusive_process": "3"}
VARIABLES = ("gpu_settings_power_limit", "gpu_settings_compute_mode", "gpu_settings_ecc", "gpu_settings_mig")
_NEAR = 0.5  # W; nvidia-smi prints hundredths and the card rounds


@dataclass(frozen=True)
class Named:
    """What one GPU is given. `set` and `reset` are arguments of nvidia-smi.

    `wrong` is what the card does not have as named, `waits` what it has from the next boot on, `unsupported`
    what it cannot be given, which is an answer and no fault.
    """

    set: tuple[tuple[str, ...], ...] = ()
    reset: tuple[tuple[str, ...], ...] = ()
    wrong: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


def any_named(profile: Profile) -> bool:
    return any(profile[name] is not None for name in VARIABLES)


def problem(profile: Profile) -> str | None:
    """What is wrong with the values, whatever the cards; None where nothing is."""
    watts, mode = profile["gpu_settings_power_limit"], profile["gpu_settings_compute_mode"]
    if watts is not None and (not isinstance(watts, int | float) or isinstance(watts, bool) or watts <= 0):
        return f"gpu_settings_power_limit is {watts!r}; it is a number of W, or not set"
    if mode is not None and mode not in COMPUTE_MODES:
        return f"gpu_settings_compute_mode is {mode!r}; it can be {', '.join(COMPUTE_MODES)}, or not set"
    for name in ("gpu_settings_ecc", "gpu_settings_mig"):
        if not isinstance(profile[name], bool | None):
            return f"{name} is {profile[name]!r}; it is true, false, or not set"
    return None


def named(gpu: Gpu, profile: Profile) -> dict[str, Named] | str:
    """What one GPU is given by variable, for those that are set; a text where the card refuses a value."""
    ecc, mig = profile["gpu_settings_ecc"], profile["gpu_settings_mig"]
    mode, watts = profile["gpu_settings_compute_mode"], profile["gpu_settings_power_limit"]
    given: dict[str, Named] = {}
    # Modes first: a card that changes them forgets what was set before.
    if ecc is not None:
        given["gpu_settings_ecc"] = _mode("ECC", "-e", gpu.ecc.mode, ecc)
    if mig is not None:
        given["gpu_settings_mig"] = _mode("MIG mode", "-mig", gpu.mig.mode, mig)
    if mode is not None:
        given["gpu_settings_compute_mode"] = _compute(gpu, mode)
    if watts is not None:
        limit = _power(gpu, watts)
        if isinstance(limit, str):
            return limit
        given["gpu_settings_power_limit"] = limit
    return given


def _power(gpu: Gpu, watts: float) -> Named | str:
    power = gpu.power
    if (lacking := _lacking("power limit", power.limit)) is not None:
        return lacking
    least, most = power.minimum, power.maximum
    if not isinstance(least, Unknown) and not isinstance(most, Unknown) and not least <= watts <= most:
        return f"GPU {gpu.index} takes a power limit of {least:g} to {most:g} W, and not {watts:g}."
    assert not isinstance(power.limit, Unknown)
    return Named(
        (("-pl", f"{watts:g}"),),
        () if isinstance(power.default, Unknown) else (("-pl", f"{power.default:g}"),),
        () if abs(power.limit - watts) <= _NEAR else (f"the power limit is {power.limit:g} W",),
    )


def _compute(gpu: Gpu, mode: str) -> Named:
    if (lacking := _lacking("compute mode", gpu.compute_mode)) is not None:
        return lacking
    wrong = () if str(gpu.compute_mode).lower() == mode else (f"the compute mode is {gpu.compute_mode}",)
    return Named((("-c", COMPUTE_MODES[mode]),), (("-c", COMPUTE_MODES["default"]),), wrong)


def _mode(what: str, option: str, mode: Mode, on: bool) -> Named:
    """A mode of the card's own. Nothing takes it back: it was named, and may be in use by then."""
    if (lacking := _lacking(what, mode.pending)) is not None:
        return lacking
    word = "on" if mode.pending else "off"
    if mode.pending is not on:
        return Named(((option, str(int(on))),), wrong=(f"{what} is {word}",))
    waits = () if mode.current is on else (f"{what} is set {word} and waits for a reboot",)
    return Named(((option, str(int(on))),), waits=waits)


def _lacking(what: str, value: Maybe[Any]) -> Named | None:
    if isinstance(value, Unsupported):
        return Named(unsupported=(f"not supported on this card: {what}",))
    if isinstance(value, Unknown):
        return Named(wrong=(f"{what} is not known: {value.reason}",))
    return None
