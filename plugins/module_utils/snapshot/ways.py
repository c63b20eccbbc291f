# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Units, modules and GPU settings on the way back."""

from __future__ import annotations

import os
import re

from . import host

MODPROBE = "/etc/modprobe.d/gpu-provision.conf"
_ON = ("enabled", "enabled-runtime")
_BUILT = re.compile(r"^([\w.-]+)[/,] ?([^,]+), ([^,]+), [^:]+: installed")


def stop(then, paths):
    """Stop units whose files are about to change; those that were not there then are switched off for good.

    `then` is {unit: {'enabled', 'active'}}. Returns the units that have to be started anew.
    """
    touched = []
    for path in paths:
        unit = _unit_of(path)
        if unit:
            host.ask(["systemctl", "stop", unit] if unit in then else ["systemctl", "disable", "--now", unit])
            touched.append(unit)
    return sorted(set(touched))


def start(then, touched):
    """Have each unit enabled and running as it was."""
    host.ask(["systemctl", "daemon-reload"])
    for unit, was in then.items():
        now = host.units([unit]).get(unit)
        if now is None:
            continue
        on = was["enabled"] in _ON
        if on != (now["enabled"] in _ON) and now["enabled"] not in ("static", "indirect", "generated"):
            host.ask(["systemctl", "enable" if on else "disable", unit])
        if was["active"] == "active" and (now["active"] != "active" or unit in touched):
            host.ask(["systemctl", "restart", unit])
        elif was["active"] == "inactive" and now["active"] == "active":
            host.ask(["systemctl", "stop", unit])


def builds(then, now):
    """[(name, version, kernel)] that DKMS had installed then and has not now, for kernels that are there."""
    had, has = (
        {match.groups() for match in map(_BUILT.match, lines) if match is not None} for lines in (then, now)
    )
    return sorted(build for build in had - has if os.path.isdir("/lib/modules/" + build[2]))


# nvidia-smi's option for each value, in the order of host.settings; the first value names the GPU.
_OPTIONS = (
    ("-pm", {"Enabled": "1", "Disabled": "0"}),
    ("-c", {"Default": "0", "Exclusive_Thread": "1", "Prohibited": "2", "Exclusive_Process": "3"}),
    ("-pl", None),
    ("-e", {"Enabled": "1", "Disabled": "0"}),
    ("-mig", {"Enabled": "1", "Disabled": "0"}),
)


def commands(then, now):
    """nvidia-smi's arguments that give each GPU the values it had then, of those that differ."""
    is_now = dict(_values(line) for line in now or ())
    found = []
    for uuid, values in (_values(line) for line in then or ()):
        if uuid not in is_now:
            continue
        for (option, words), was, is_ in zip(_OPTIONS, values, is_now[uuid]):
            number = re.match(r"[\d.]+", was)
            value = words.get(was) if words else number and number.group()
            if was != is_ and value:
                found.append(["-i", uuid, option, value])
    return found


def settings(then, now):
    for arguments in commands(then, now):
        host.ask(["nvidia-smi", *arguments], seconds=60)


def _values(line):
    uuid, *values = [value.strip() for value in line.split(",")]
    return uuid, values


def _unit_of(path):
    """The unit that a file below /etc/systemd/system is about; None for other files."""
    found = re.match(r"^/etc/systemd/system/([^/]+\.(?:service|path|timer|socket))(?:\.d/[^/]+)?$", path)
    return found.group(1) if found else None
