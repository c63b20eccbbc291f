"""Role gpu_settings: persistence mode by the daemon, and clocks by a unit of ours, both back after a reboot.

Neither survives one by itself: `nvidia-smi -pm` and clocks are lost with the driver's state, and the
driver forgets clocks as soon as the last client closes where persistence is off (nvidia-smi(1)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..facts.known import Absent, Unknown
from . import clocks
from .clocks import Setting
from .wanted import File, Unit, Wanted, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.stack import Stack
    from ..facts import Facts
    from ..profile.model import Profile

DAEMON = "nvidia-persistenced.service"
DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d/gpu-provision.conf"
CLOCKS_UNIT = "gpu-provision-clocks.service"
UNIT_FILE = f"/etc/systemd/system/{CLOCKS_UNIT}"
SCRIPT = "/usr/local/lib/gpu-provision/clocks"
OWNED: Mapping[str, tuple[str, ...]] = {DAEMON: (DROP_IN,), CLOCKS_UNIT: (UNIT_FILE, SCRIPT)}
# Ubuntu's packaged unit starts the daemon with this, so that "active" says nothing about persistence.
_OFF, _ON = "--no-persistence-mode", "--persistence-mode"


@dataclass(frozen=True)
class SettingsWanted(Wanted):
    """`restart`: units that run and whose work is undone all the same. `legacy_off`: persistence was switched
    on past the daemon (`nvidia-smi -pm 1`) and has to be switched off the same way. `owned` has the files by
    the unit that reads them.
    `settings` has what each GPU is given, or why it cannot be."""

    restart: tuple[str, ...] = ()
    legacy_off: bool = False
    owned: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: OWNED)
    settings: tuple[Setting, ...] = ()


def wanted(facts: Facts, profile: Profile, stack: Stack | Unknown) -> SettingsWanted:
    """Files, units and per-GPU values. The stack plays no part: the cards tell what they support."""
    persistence, asked = profile["gpu_settings_persistence"], profile["gpu_settings_clocks"]
    if (said := clocks.problem(asked)) is not None:
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
    daemon = _daemon(facts, persistence)
    if daemon.refused:
        return daemon
    return _with_clocks(daemon, facts, asked)


def _daemon(facts: Facts, on: bool) -> SettingsWanted:
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
            units=_off(facts, DAEMON),
            why=(Why("persistence", "off, so that the driver lets go of idle GPUs"),),
            legacy_off=not unit.runs and _persistent(facts, True),
            steps=_legacy_steps(not unit.runs and _persistent(facts, True)),
        )
    if unit.load == "masked":
        # Whoever did that meant it; and what a masked unit would start cannot be read.
        return SettingsWanted(
            refused=f"{DAEMON} is masked, so that nothing can start it: run `systemctl unmask {DAEMON}` "
            "there, or set gpu_settings_persistence: false"
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


def _off(facts: Facts, name: str) -> tuple[Unit, ...]:
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


def _with_clocks(daemon: SettingsWanted, facts: Facts, asked: Any) -> SettingsWanted:
    if asked == "none":
        return _joined(
            daemon,
            files=(File(UNIT_FILE, None), File(SCRIPT, None, mode="0755")),
            units=_off(facts, CLOCKS_UNIT),
            why=(Why("clocks", "left to the driver"),),
        )
    if isinstance(facts.smi, Unknown):
        return SettingsWanted(
            refused=f"the driver does not answer, so no clocks are known: {facts.smi.reason}"
        )
    found = [clocks.setting(gpu, asked) for gpu in facts.smi.gpus]
    refused = [said for said in found if isinstance(said, str)]
    if refused:
        return SettingsWanted(refused="gpu_settings_clocks: " + " ".join(refused))
    settings = tuple(s for s in found if isinstance(s, Setting))
    why = tuple(_why(s) for s in settings)
    if not any(s.set for s in settings):
        return _joined(
            daemon,
            files=(File(UNIT_FILE, None), File(SCRIPT, None, mode="0755")),
            units=_off(facts, CLOCKS_UNIT),
            why=why,
            settings=settings,
        )
    return _joined(
        daemon,
        files=(File(SCRIPT, _script(settings), mode="0755"), File(UNIT_FILE, _UNIT_TEXT)),
        units=(Unit(CLOCKS_UNIT, enabled=True, active=True),),
        why=why,
        settings=settings,
        restart=(CLOCKS_UNIT,) if undone(facts, settings) else (),
    )


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


def _joined(daemon: SettingsWanted, **more: Any) -> SettingsWanted:
    restart = daemon.restart + more.get("restart", ())
    return SettingsWanted(
        files=daemon.files + more.get("files", ()),
        units=daemon.units + more.get("units", ()),
        why=daemon.why + more.get("why", ()),
        restart=restart,
        steps=daemon.steps + tuple(f"restart {unit}, whose work is undone" for unit in restart),
        legacy_off=daemon.legacy_off,
        settings=more.get("settings", ()),
    )


# PartOf: where the daemon stops the driver forgets the clocks, and this unit must not claim to hold them.
_UNIT_TEXT = f"""\
# Written by gpu-provision (role gpu_settings).
[Unit]
Description=GPU clocks
After={DAEMON}
Wants={DAEMON}
PartOf={DAEMON}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=10min
ExecStart={SCRIPT} set
ExecStop={SCRIPT} reset

[Install]
WantedBy=multi-user.target
"""

_SCRIPT_HEAD = """\
#!/bin/sh
# Written by gpu-provision (role gpu_settings): `set` or `reset` the clocks of this host's GPUs.
# nvidia-smi ends with 0 where a card does not support a setting, so its words count too.
failed=0
apply() {
    tries=0
    while :; do
        said=$(timeout 60 nvidia-smi "$@" 2>&1)
        status=$?
        case $said in
            *"ot supported"* | *"ot Supported"* | *deprecated*) status=unsupported ;;
        esac
        [ "$status" = 0 ] && return
        tries=$((tries + 1))
        if [ "$status" = unsupported ] || [ "$tries" -ge 10 ]; then
            echo "nvidia-smi $*: $said" >&2
            failed=1
            return
        fi
        sleep 3
    done
}
"""


def _script(settings: tuple[Setting, ...]) -> str:
    def lines(kind: str) -> list[str]:
        return [f"    apply -i {s.gpu} {' '.join(argv)}" for s in settings for argv in getattr(s, kind)]

    return (
        _SCRIPT_HEAD
        + "\n".join(["case ${1:-} in", "set)", *lines("set"), "    ;;", "reset)", *lines("reset"), "    ;;"])
        + '\n*)\n    echo "usage: $0 set|reset" >&2\n    exit 2\n    ;;\nesac\nexit "$failed"\n'
    )
