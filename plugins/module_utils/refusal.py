# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Why a simulated transaction must not run: pure, over the simulation's steps."""

from __future__ import annotations

import re

# Packages that put another kernel below /boot. Headers do not.
_KERNEL = re.compile(r"^(linux-image-|linux-modules-(?!nvidia)|proxmox-kernel-|pve-kernel-|linux-kernel-)")
_DRIVER = re.compile(r"^(nvidia-|libnvidia-|libcuda1$|firmware-nvidia-|cuda-drivers|linux-modules-nvidia)")
# Packages that bring the driver's kernel module, of any source.
_MODULES = re.compile(
    r"^(nvidia-(?:open-)?kernel-(?:open-)?dkms|nvidia-(?:tesla|legacy)-\w*-?(?:open-)?kernel-dkms|nvidia-dkms(?:-.*)?"
    r"|linux-modules-nvidia-.*)$"
)
_VERSION = re.compile(r"^(?:\d+:)?(\d{3,4})\.\d+(?:\.\d+)?(?=$|[-+~])")


def refusal(steps, held, asked):
    """What is wrong with the steps, in words; None where nothing is.

    A step is {'do': 'Inst'|'Remv', 'name', 'old', 'new', 'back'}; `back` is true for an older version.
    `held` are the packages that apt holds; `asked` is the module's parameters.
    """
    kernels = [step for step in steps if _KERNEL.match(step["name"])]
    if kernels:
        return "the kernel would change (%s)" % _listed(kernels)
    removed = [step for step in steps if step["do"] == "Remv" and step["name"] not in asked["absent"]]
    if removed:
        return "it would remove %s, which nobody named" % _listed(removed)
    gone = [step for step in steps if step["do"] == "Remv" and _MODULES.match(step["name"])]
    staying = {want.partition("=")[0] for want in asked["packages"]} - {step["name"] for step in gone}
    if gone and not any(_MODULES.match(name) for name in staying):
        return "the driver's module would go without a replacement (%s)" % _listed(gone)
    ours = set(asked["holds"]) | set(asked["absent"])
    foreign = [step for step in steps if step["name"] in held and step["name"] not in ours]
    if foreign:
        said = "it would change %s, held by somebody else (`apt-mark unhold` lifts a hold)"
        return said % _listed(foreign)
    other = [step for step in steps if step["do"] == "Inst" and _other_branch(step, asked)]
    if other:
        return "another branch than %d would come: %s" % (asked["branch"], _listed(other))
    exact = {want.partition("=")[0] for want in asked["packages"] if "=" in want}
    back = [step for step in steps if step["back"] and step["name"] not in exact]
    return "it would take %s back to an older version, which nobody named" % _listed(back) if back else None


def _other_branch(step, asked):
    if asked["branch"] is None or not _DRIVER.match(step["name"]) or step["name"] in asked["independent"]:
        return False
    version = _VERSION.match(step["new"] or "")
    return version is not None and int(version.group(1)) != asked["branch"]


def _listed(steps):
    told = ["%s %s -> %s" % (s["name"], s["old"] or "none", s["new"] or "none") for s in steps[:6]]
    more = " and %d more" % (len(steps) - 6) if len(steps) > 6 else ""
    return ", ".join(told) + more
