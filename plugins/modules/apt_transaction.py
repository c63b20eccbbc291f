#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module apt_transaction: one package transaction that is simulated first and cannot be cut in half."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: apt_transaction
short_description: One apt transaction, simulated first and run where a dropped line cannot cut it
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Installs packages on Debian and its kin as one transaction in a transient systemd unit. The unit goes on
    when the connection or the controller is lost; a later run finds it, waits for it and reads its result.
  - Before that the transaction is simulated, and refused where it would change the kernel, remove packages
    that were not named, bring another branch of the driver, take its modules away without a replacement, or
    change a package that somebody else holds.
  - Waits for apt's locks up to a limit and names the holder; looks at the free space before it fetches.
  - Afterwards builds the NVIDIA module by DKMS for each named kernel that lacks it, rebuilds an initramfs
    that is older than a named file, and holds the named packages.
  - Does nothing at all where everything is there already.
options:
  packages:
    description: Packages to have installed, as V(NAME) or V(NAME=VERSION).
    type: list
    elements: str
    default: []
  first:
    description:
      - Packages that go in before O(packages), in a transaction of their own, such as one that pins. V(NAME-)
        is removed in it.
    type: list
    elements: str
    default: []
  absent:
    description: Packages that may be removed for this, and are if they are installed.
    type: list
    elements: str
    default: []
  holds:
    description:
      - Packages to be held once they are installed. A hold of theirs does not stop this module.
      - What this module held for the same O(set) and is no longer named is let go of; a hold of another set
        or of somebody else's stays.
    type: list
    elements: str
    default: []
  set:
    description: The name of the set that O(holds) are; each role that holds packages has one of its own.
    type: str
    default: ""
  branch:
    description: Branch of the driver (its first number). A package of another branch is refused.
    type: int
  independent:
    description: Packages of the driver's whose version is their own, so that O(branch) does not bind them.
    type: list
    elements: str
    default: []
  kernels:
    description: Releases of the installed kernels that need an NVIDIA module built by DKMS.
    type: list
    elements: str
    default: []
  initramfs_after:
    description: A file that each initramfs has a copy of; an initramfs that is older is rebuilt.
    type: path
  build_space:
    description: Bytes that a DKMS build needs below C(/var/lib/dkms) for each kernel, beside the packages.
    type: int
    default: 0
  refresh:
    description:
      - Fetch the package lists first. They are also fetched where something is to be installed and they are
        missing, old or lack a package.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for another process to let go of apt's locks.
    type: int
    default: 600
  timeout:
    description: Seconds to wait for the transaction. It goes on after that, and a later run reads its result.
    type: int
    default: 3600
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
    details: Reports what the simulation would change. Package lists are not fetched, so what an archive has
      that is not configured yet cannot be simulated.
  diff_mode:
    support: full
  platform:
    support: full
    platforms: debian
notes:
  - Needs systemd, apt 1.9.11 or newer, and the right to change packages.
"""

EXAMPLES = r"""
- name: Install Debian's open kernel modules at one version and hold them
  gpu_provision.host.apt_transaction:
    packages:
      - linux-headers-6.1.0-37-amd64
      - nvidia-open-kernel-dkms=535.261.03-1
      - nvidia-smi=535.261.03-1
    holds:
      - nvidia-open-kernel-dkms
      - nvidia-smi
    branch: 535
    kernels:
      - 6.1.0-37-amd64
"""

RETURN = r"""
steps:
  description: What the transaction changed, or would change in check mode.
  returned: success
  type: list
  elements: dict
  contains:
    do:
      description: V(Inst) or V(Remv).
      type: str
    name:
      description: The package.
      type: str
    old:
      description: Version before, null where it was not installed.
      type: str
    new:
      description: Version after, null where it is removed.
      type: str
builds:
  description: The DKMS builds made, as name, version and kernel.
  returned: success
  type: list
  elements: list
initramfs:
  description: Kernels whose initramfs was rebuilt.
  returned: success
  type: list
  elements: str
repaired:
  description: Packages that an earlier interrupted transaction had left half-configured.
  returned: success
  type: list
  elements: str
resumed:
  description: Whether a transaction of an earlier run was found running and waited for.
  returned: always
  type: bool
waited:
  description: Seconds waited for apt's locks.
  returned: always
  type: float
held_by:
  description: The last process that held a lock, as path, pid and command.
  returned: when a lock was waited for
  type: dict
log:
  description: Folder on the host with the transaction's script, log and exit status.
  returned: when a transaction ran
  type: str
"""

import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils import (
    apt,
    dkms,
    initramfs,
    locks,
    ours,
    space,
    transient,
)
from ansible_collections.gpu_provision.host.plugins.module_utils.refusal import refusal

LISTS_OLD_AFTER = 3600  # seconds; older lists may name packages that the archive has replaced since


class Transaction:
    """One call of the module: what is asked for, what is there, and what was done."""

    def __init__(self, module):
        self.module = module
        self.asked = module.params
        self.result = {"changed": False, "steps": [], "builds": [], "initramfs": [], "repaired": [],
                       "resumed": False, "waited": 0.0}  # fmt: skip
        self.known = apt.packages()
        self.held = apt.holds()
        self.refreshed = False
        self.raced = False

    def fail(self, msg):
        self.module.fail_json(msg=msg, **self.result)

    def run(self):
        self.join()
        if self.asked["refresh"] and not self.module.check_mode:
            self.unlocked()
            self.refresh()
        self.repair()
        self.install(self.asked["first"], [])
        self.install(self.asked["packages"], self.asked["absent"])
        self.builds()
        self.initramfs()
        self.hold()
        self.module.exit_json(**self.result)

    def join(self):
        """Wait for what an earlier run left running; what it did is looked at afterwards."""
        if transient.running() is None or self.module.check_mode:
            return
        self.result.update(resumed=True, changed=True)
        ended = self.ended(lambda: transient.wait(self.asked["timeout"]))
        if ended.rc != 0:
            self.module.warn("The transaction of an earlier run failed: %s" % apt.complaint(ended.log))
        self.known = apt.packages()

    def arguments(self, wanted, absent):
        """What apt-get install is to be given; empty where everything is as asked."""
        removals = [name + "-" for name in absent if apt.present(self.known.get(name))]
        return apt.missing(wanted, self.known) + removals

    def install(self, wanted, absent):
        arguments = self.arguments(wanted, absent)
        if not arguments:
            return
        if not self.module.check_mode:
            self.unlocked()
            self.refresh()
        steps = self.simulated(arguments)
        if not self.module.check_mode:
            self.room(arguments)
            ours.note_brought(step["name"] for step in steps if step["do"] == "Inst" and not step["old"])
            self.transact(arguments, wanted)
        steps = self.result["steps"] + steps
        self.result.update(changed=True, steps=steps, diff=_diff(steps))

    def repair(self):
        """Finish what an interrupted transaction of ours left; apt does nothing at all before that."""
        half = apt.half_done(self.known)
        lacking = self.arguments(self.asked["first"] + self.asked["packages"], self.asked["absent"])
        if not half or not (lacking or self.ours(half)):
            return
        if not self.ours(half):
            self.fail(
                "An interrupted package transaction left %s half-configured, and they are not ours to "
                "finish. Run `dpkg --configure -a` on the host and look at what it says." % ", ".join(half)
            )
        self.result.update(changed=True, repaired=half)
        if self.module.check_mode:
            self.module.exit_json(**self.result)
        self.unlocked()
        script = apt.repair_script([name for name in half if name in self.asked["absent"]])
        ended = self.ended(lambda: transient.run(script, self.asked["timeout"]))
        self.known = apt.packages()
        if ended.rc != 0 or apt.half_done(self.known):
            self.fail(self.story(ended, "Finishing an interrupted package transaction"))

    def ours(self, names):
        mine = {want.partition("=")[0].rstrip("-") for want in self.asked["first"] + self.asked["packages"]}
        mine.update(self.asked["holds"], self.asked["absent"])
        return all(name in mine or dkms.is_driver_package(name) for name in names)

    def unlocked(self):
        waited, holder, free = locks.wait(self.asked["lock_timeout"])
        self.result["waited"] = round(waited, 1)
        if holder:
            self.result["held_by"] = holder
        if not free:
            self.fail(
                "%s is held by process %d (%s) and was not freed in %d s; nothing was changed. Run this "
                "again when it has ended."
                % (holder["path"], holder["pid"], holder["command"] or "gone", waited)
            )

    def refresh(self, force=False):
        """Fetch the package lists, at most once a call."""
        age = apt.lists_age(time.time())
        if self.refreshed or not (force or self.asked["refresh"] or age is None or age > LISTS_OLD_AFTER):
            return
        self.refreshed = True
        trouble = apt.update()
        if trouble and "could not be read" in trouble:
            self.fail("apt cannot read its sources:\n%s" % trouble)
        if trouble:
            self.module.warn("apt-get update: %s" % trouble)

    def simulated(self, arguments):
        steps, trouble = apt.simulate(arguments)
        if trouble and not self.module.check_mode and not self.refreshed and _lists_lack(trouble):
            self.refresh(force=True)
            steps, trouble = apt.simulate(arguments)
        if trouble and self.module.check_mode and _lists_lack(trouble):
            self.module.warn("Not simulated, as the package lists do not have all of it yet: %s" % trouble)
            wants = (want.partition("=") for want in arguments)
            return [{"do": "Inst", "name": name, "old": None, "new": new or None} for name, _, new in wants]
        if trouble:
            why = _about_headers(trouble)
            self.fail("apt cannot install the set; nothing was changed:\n%s%s" % (trouble, why))
        says = refusal(steps, self.held, self.asked)
        if says:
            self.fail("The transaction was simulated and refused, nothing was changed: %s" % says)
        return steps

    def room(self, arguments):
        download, unpack = apt.sizes(arguments)
        needs = [("/var/cache/apt/archives", download or 0), ("/usr", unpack or 0),
                 ("/var/lib/dkms", self.asked["build_space"] * len(self.asked["kernels"]))]  # fmt: skip
        short = space.short(needs)
        if short:
            self.fail("Not enough room on the disk; nothing was changed: %s" % "; ".join(short))

    def transact(self, arguments, wanted):
        script = apt.install_script(arguments, self.asked["lock_timeout"])

        def start():
            if self.raced:  # what was judged may be another transaction by now
                self.simulated(arguments)
            return transient.run(script, self.asked["timeout"])

        ended = self.ended(start)
        if ended.rc == 0 and not apt.missing(wanted, apt.packages()):
            self.known = apt.packages()
            return
        if ended.rc not in (0, None) and "404 " in ended.log and not self.refreshed:
            self.refresh(force=True)
            self.transact(arguments, wanted)
            return
        self.known = apt.packages()
        self.result["changed"] = True
        self.fail(self.story(ended, "The package transaction"))

    def ended(self, call):
        """Run or join a unit, with its ways to end without a result told in words."""
        try:
            ended = call()
        except transient.Busy:
            self.raced = True
            return self.ended(lambda: (transient.wait(self.asked["timeout"]), call())[1])
        except transient.StillRunning as e:
            self.fail(
                "The transaction still runs on the host after %d s (%s). Nothing stops it; run this again to "
                "read its result." % (self.asked["timeout"], e)
            )
        except transient.NotStarted as e:
            self.fail("systemd did not start the transaction: %s" % e)
        self.result["log"] = ended.folder
        return ended

    def story(self, ended, what):
        if ended.rc is None:
            said = "it was killed or the host went down under it; run this again to finish it"
        else:
            said = apt.complaint(ended.log) or "exit status %d" % ended.rc
        told = ["%s failed: %s" % (what, said)]
        half = apt.half_done(apt.packages())
        if half:
            told.append("Half-configured: %s" % ", ".join(half))
        told += [error for error in (self.build_error(*build) for build in self.builds_missing()) if error]
        told.append("The whole log is %s/log on the host." % ended.folder)
        return "\n".join(told)

    def builds_missing(self):
        """(name, version, kernel) of each build that the kernels lack."""
        added = dkms.added()
        status = apt.ask(["dkms", "status"])[1] if added else ""
        every = [(name, version, release) for name, version in added for release in self.asked["kernels"]]
        return [build for build in every if not dkms.status_installed(status, *build)]

    def build_error(self, name, version, release):
        path = dkms.make_log(name, version, release)
        if not path:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            error = dkms.first_error(file.read())
        said = error or "no error named"
        return "%s %s did not build for kernel %s: %s (%s)" % (name, version, release, said, path)

    def builds(self):
        builds = self.builds_missing()
        if not builds:
            return
        self.result.update(changed=True, builds=[list(build) for build in builds])
        if self.module.check_mode:
            return
        ended = self.ended(lambda: transient.run(dkms.build_script(builds), self.asked["timeout"]))
        left = self.builds_missing()
        if ended.rc != 0 or left:
            releases = ", ".join(build[2] for build in left or builds)
            self.fail(self.story(ended, "The DKMS build for kernel %s" % releases))

    def initramfs(self):
        stale = initramfs.stale(self.asked["initramfs_after"]) if self.asked["initramfs_after"] else []
        if not stale:
            return
        self.result.update(changed=True, initramfs=stale)
        if self.module.check_mode:
            return
        ended = self.ended(lambda: transient.run(initramfs.script(stale), self.asked["timeout"]))
        if ended.rc != 0:
            self.fail(self.story(ended, "Rebuilding the initramfs"))

    def hold(self):
        """Hold the set, and let go of what it held before; holds of other sets and other people's stay."""
        now, sets = apt.holds(), ours.holds()
        own = sets.pop(self.asked["set"], [])
        others = {name for names in sets.values() for name in names}
        wanted = [name for name in self.asked["holds"] if apt.installed(self.known.get(name))]
        free = sorted(name for name in wanted if name not in now)
        stale = sorted(name for name in own if name in now and name not in {*self.asked["holds"], *others})
        kept = sorted({name for name in wanted if name in own or name in others} | (set(free) - self.held))
        if self.asked["holds"] and (free or stale or kept != own):
            self.result["changed"] = True
            if not self.module.check_mode:
                self.mark("hold", free)
                self.mark("unhold", stale)
                ours.keep_holds({**sets, self.asked["set"]: kept})

    def mark(self, what, names):
        rc, said = apt.ask(["apt-mark", what, *names]) if names else (0, "")
        if rc != 0:
            self.fail("apt-mark %s %s: %s" % (what, " ".join(names), said.strip()))


def _lists_lack(trouble):
    texts = ("Unable to locate package", "was not found", "no installation candidate")
    return any(text in trouble for text in texts)


def _about_headers(trouble):
    lacking = re.search(r"linux-headers-(\d\S+?)['\s]", trouble + " ")
    if not lacking:
        return ""
    return (
        "\nKernel %s has no headers in the configured archives, so no module can be built for it and a boot "
        "into it would have no driver. Install a kernel that the archive has headers of, and remove this one."
        % lacking.group(1)
    )


def _diff(steps):
    def side(key):
        return "".join("%s %s\n" % (step["name"], step[key]) for step in steps if step[key])

    return {"before": side("old"), "after": side("new")}


def main():
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "first": {"type": "list", "elements": "str", "default": []},
            "absent": {"type": "list", "elements": "str", "default": []},
            "holds": {"type": "list", "elements": "str", "default": []},
            "set": {"type": "str", "default": ""},
            "branch": {"type": "int"},
            "independent": {"type": "list", "elements": "str", "default": []},
            "kernels": {"type": "list", "elements": "str", "default": []},
            "initramfs_after": {"type": "path"},
            "build_space": {"type": "int", "default": 0},
            "refresh": {"type": "bool", "default": False},
            "lock_timeout": {"type": "int", "default": 600},
            "timeout": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    Transaction(module).run()


if __name__ == "__main__":
    main()
