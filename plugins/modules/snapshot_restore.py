#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module snapshot_restore: put a host's packages, holds, files and settings back as a snapshot has them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot_restore
short_description: Put a host back as a snapshot of it has it
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Puts packages back from the .deb files that the snapshot keeps, as one transaction in a transient systemd
    unit, and takes away what came by this collection since. The transaction is simulated first and refused
    where it would do anything else. No archive is needed.
  - Puts holds, the files of the snapshot, the state of its units and the settings of the GPUs back, and looks
    at the end whether all of that is as it was.
  - Packages that are not of this collection's making stay as they are.
  - A run that is interrupted is finished by running this again.
options:
  name:
    description: Name of the snapshot.
    type: str
    required: true
  timeout:
    description: Seconds to wait for the transaction. It goes on after that; running this again waits for it.
    type: int
    default: 3600
  lock_timeout:
    description: Seconds to wait for another process to let go of apt's locks.
    type: int
    default: 600
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    support: full
    platforms: debian
"""

EXAMPLES = r"""
- name: Go back
  gpu_provision.host.snapshot_restore:
    name: before-580
"""

RETURN = r"""
returned:
  description: Packages that were put back.
  returned: always
  type: list
  elements: str
gone:
  description: Packages that were taken away.
  returned: always
  type: list
  elements: str
files:
  description: Files that were put back.
  returned: always
  type: list
  elements: str
others:
  description: Packages that are not as they were and are not ours to move.
  returned: always
  type: list
  elements: str
state:
  description: The state that a failure left the host in.
  returned: failure
  type: str
"""

import json
import os
import shlex

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils import apt, dkms, locks, ours, transient
from ansible_collections.gpu_provision.host.plugins.module_utils.snapshot import (
    back,
    files,
    host,
    store,
    ways,
)

MARK = os.path.join(store.ROOT, "restoring.json")


class Restoring:
    """One call of the module."""

    def __init__(self, module):
        self.module, self.asked = module, module.params
        self.state = "untouched"
        self.result = {"changed": False, "returned": [], "gone": [], "files": [], "others": []}

    def fail(self, msg):
        self.module.fail_json(msg=msg, **dict(self.result, state=self.state))

    def run(self):
        try:
            self.then = store.read(self.asked["name"])
        except store.NoSnapshot as e:
            there = ", ".join(store.names()) or "none"
            self.fail("%s; there are: %s" % (e, there))
        self.folder = os.path.join(store.ROOT, self.asked["name"])
        if transient.running() is not None and not self.module.check_mode:
            self.unit(lambda: transient.wait(self.asked["timeout"]))
        brought, now = ours.brought(), host.packages()
        self.back = back.returning(self.then, now)
        self.gone = back.leaving(self.then, now, brought)
        self.purged = back.purging(self.then, now, brought)
        self.paths = files.differing(self.then["files"])
        hold, free = back.marks(self.then, host.marks("hold"), ours.holds())
        own = self.then["own_holds"] != ours.holds()
        self.result.update(returned=self.back, gone=self.gone, files=self.paths)
        self.result["others"] = back.others(self.then, now, brought)
        packages = bool(self.back or self.gone or self.purged)
        again = os.path.exists(MARK)
        self.result["changed"] = bool(packages or self.paths or hold or free or own or again or self.wrong())
        if not self.result["changed"]:
            self.module.exit_json(**self.result)
        if packages:
            self.simulate()
        if self.module.check_mode:
            self.module.exit_json(**self.result)
        self.begin()
        stopped = ways.stop(self.then["units"], self.paths)
        if packages:
            self.transact()
        self.holds()
        for path in self.paths:
            files.put_back(path, self.then["files"][path], os.path.join(self.folder, "files"))
        self.modules()
        ways.start(self.then["units"], stopped)
        ways.settings(self.then["settings"], host.settings())
        left = self.wrong()
        if left:
            self.fail("The host is not as it was then: %s" % "; ".join(left))
        os.unlink(MARK)
        self.module.exit_json(**self.result)

    def begin(self):
        self.state = "partial"
        with open(MARK, "w", encoding="utf-8") as out:
            json.dump({"snapshot": self.asked["name"]}, out)

    def arguments(self):
        paths = [os.path.join(self.folder, "debs", self.then["debs"][name]["file"]) for name in self.back]
        return paths + [name + "-" for name in self.gone]

    def simulate(self):
        if not self.back and not self.gone:
            return
        steps, trouble = apt.simulate(self.arguments())
        if trouble:
            self.fail("apt cannot go back; nothing was changed:\n%s" % trouble)
        says = back.refusal(steps, self.back, self.gone)
        if says:
            self.fail("Going back was simulated and refused, nothing was changed: %s" % says)

    def transact(self):
        waited, holder, free = locks.wait(self.asked["lock_timeout"])
        if not free:
            self.fail(
                "%s is held by process %d (%s) and was not freed in %d s. Run this again when it has ended."
                % (holder["path"], holder["pid"], holder["command"] or "gone", waited)
            )
        # What a broken transaction left is finished as far as it goes; what does not go is replaced below.
        lines = ["dpkg --force-confdef --force-confold --configure -a || :"]
        if self.back or self.gone:
            lines.append(apt.install_script(self.arguments(), self.asked["lock_timeout"]) + " || exit 1")
        if self.purged:
            lines.append("dpkg --purge " + " ".join(map(shlex.quote, self.purged)))
        ended = self.unit(lambda: transient.run("\n".join(lines), self.asked["timeout"]))
        if ended.rc != 0:
            told = apt.complaint(ended.log) if ended.rc is not None else "it was killed"
            self.fail(
                "Going back stopped in its package transaction: %s\nRunning this again goes on. The whole "
                "log is %s/log on the host." % (told, ended.folder)
            )

    def unit(self, call):
        try:
            return call()
        except transient.Busy:
            return self.unit(lambda: (transient.wait(self.asked["timeout"]), call())[1])
        except transient.StillRunning as e:
            self.fail("A transaction still runs on the host (%s). Nothing stops it; run this again." % e)
        except transient.NotStarted as e:
            self.fail("systemd did not start the transaction: %s" % e)

    def holds(self):
        hold, free = back.marks(self.then, host.marks("hold"), ours.holds())
        manual, kept = set(self.then["manual"]), set(self.then["debs"])
        is_manual = set(host.marks("manual"))
        for what, names in (
            ("hold", hold),
            ("unhold", free),
            ("manual", sorted((kept & manual) - is_manual)),
            ("auto", sorted(kept & is_manual - manual)),
        ):
            rc, said = apt.ask(["apt-mark", what, *names]) if names else (0, "")
            if rc != 0:
                self.fail("apt-mark %s: %s" % (what, said.strip()))
        ours.keep_holds(self.then["own_holds"])

    def modules(self):
        """Build what DKMS had built and has no more; the packages' own scripts have done most of it."""
        builds = ways.builds(self.then["modules"], host.modules())
        script = [dkms.build_script(builds)] if builds else []
        if ways.MODPROBE in self.paths and os.path.exists("/usr/sbin/update-initramfs"):
            script.append("update-initramfs -u -k all")
        if script:
            ended = self.unit(lambda: transient.run(" &&\n".join(script), self.asked["timeout"]))
            if ended.rc != 0:
                self.fail("A module or an initramfs was not built: %s" % apt.complaint(ended.log))

    def wrong(self):
        """What is not as it was then, of all that is put back."""
        now = host.packages()
        told = ["package %s" % name for name in back.returning(self.then, now)]
        told += ["package %s is there" % name for name in back.leaving(self.then, now, ours.brought())]
        told += ["%s is other" % path for path in files.differing(self.then["files"])]
        hold, free = back.marks(self.then, host.marks("hold"), ours.holds())
        told += ["%s is not held" % name for name in hold] + ["%s is held" % name for name in free]
        gone = ways.builds(self.then["modules"], host.modules())
        return told + ["no module %s %s for kernel %s" % build for build in gone]


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "timeout": {"type": "int", "default": 3600},
            "lock_timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    Restoring(module).run()


if __name__ == "__main__":
    main()
