#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module snapshot: keep what is needed to put a host back, or take such a snapshot away."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot
short_description: Keep what is needed to put a host's packages, holds, files and settings back
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Writes a snapshot below C(/var/lib/gpu-provision/snapshots). It is there whole or not at all, and room on
    the disk is looked for first.
  - It has the versions of all packages with the holds and marks of apt; the .deb files of the driver's
    packages and of those that this collection holds, so that going back needs no archive; the named files;
    the state of the named units; what DKMS has built; settings of the GPUs; and the recording that is given.
  - A .deb file comes from an earlier snapshot, from apt's cache or from the archive. What no archive has any
    more is packed again from the host's own files.
  - It does not have the data of disks, C(/boot), the EFI partition or the kernel.
options:
  name:
    description:
      - Name of the snapshot. Where there is one of that name, nothing is done.
      - Without a name one is taken only where the host has none yet.
    type: str
    default: ""
  why:
    description: What it is taken before, for whoever reads the list.
    type: str
    default: ""
  paths:
    description:
      - Files that M(gpu_provision.host.snapshot_restore) puts back, there or not. Wildcards are allowed.
    type: list
    elements: str
    default: []
  beside:
    description: Files that are kept to be looked at, and not put back.
    type: list
    elements: str
    default: []
  units:
    description: Units of systemd whose state is kept.
    type: list
    elements: str
    default: []
  recording:
    description: What the host looks like, of schema gpu-provision/recording/1.
    type: dict
    default: {}
  outside:
    description: What a command outside of the host said of a snapshot of its own, kept with this one.
    type: dict
    default: {}
  keep:
    description: How many snapshots stay, this one among them. The first is never taken away for that.
    type: int
    default: 5
  required:
    description: Whether it is a failure where none can be taken; else a warning.
    type: bool
    default: true
  absent:
    description: Names of snapshots to take away, instead of taking one.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
    details: Whether the .deb files can be had is not tried.
  diff_mode:
    support: none
  platform:
    support: full
    platforms: debian
"""

EXAMPLES = r"""
- name: Keep the way back
  gpu_provision.host.snapshot:
    name: before-580
    paths: [/etc/nccl.conf]
"""

RETURN = r"""
snapshot:
  description: Name of the snapshot that was taken, or of the newest one that is there.
  returned: always
  type: str
debs:
  description: How many .deb files came from V(snapshot), V(cache) and V(archive), and were V(repacked).
  returned: when one was taken
  type: dict
bytes:
  description: Room that it takes.
  returned: when one was taken
  type: int
removed:
  description: Snapshots that were taken away.
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
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils import ours, space
from ansible_collections.gpu_provision.host.plugins.module_utils.snapshot import (
    debs,
    files,
    host,
    repack,
    store,
)

SPARE = 64 * 2**20  # bytes for files, documents and the recording


class Taking:
    """One call of the module."""

    def __init__(self, module):
        self.module, self.asked = module, module.params
        self.there = store.names()
        self.newest = self.there[-1] if self.there else ""
        self.result = {"changed": False, "snapshot": self.newest, "removed": []}

    def run(self):
        try:
            if self.asked["absent"]:
                self.remove([name for name in self.asked["absent"] if name in self.there])
            elif not (self.asked["name"] in self.there or (self.there and not self.asked["name"])):
                self.take(self.asked["name"] or time.strftime("%Y%m%dT%H%M%SZ-first", time.gmtime()))
        except (OSError, store.NoSnapshot, repack.Unpackable) as e:
            self.give_up(str(e))
        self.module.exit_json(**self.result)

    def give_up(self, why):
        told = "No snapshot could be taken, so there would be no way back: %s" % why
        if self.asked["required"] or self.asked["absent"]:
            self.module.fail_json(msg=told, **dict(self.result, state="untouched"))
        self.result.update(changed=False, snapshot=self.newest)
        self.module.warn(told)

    def remove(self, names):
        if names:
            self.result.update(changed=True, removed=names)
        for name in names if not self.module.check_mode else []:
            store.remove(name)

    def take(self, name):
        self.result.update(changed=True, snapshot=name)
        if self.module.check_mode:
            return
        began = time.monotonic()
        packages, held = host.packages(), ours.holds()
        # What came along with ours goes again on a way back, and is needed on the way forward after it.
        kept = host.scope(packages, {each for names in held.values() for each in names} | set(ours.brought()))
        older = [os.path.join(store.ROOT, each, "debs") for each in reversed(self.there)]
        self.room([packages[each] for each in kept])
        folder = store.begin(name)
        try:
            found = debs.gather(
                [(each, packages[each]["version"], packages[each]["arch"]) for each in kept],
                os.path.join(folder, "debs"),
                older,
            )
            place = os.path.join(folder, "files")
            document = {
                "name": name,
                "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "why": self.asked["why"],
                "packages": packages,
                "debs": found,
                "holds": host.marks("hold"),
                "manual": host.marks("manual"),
                "own_holds": held,
                "files": {path: files.keep(path, place) for path in files.expand(self.asked["paths"])},
                "beside": {path: files.keep(path, place) for path in files.expand(self.asked["beside"])},
                "units": host.units(self.asked["units"]),
                "modules": host.modules(),
                "settings": host.settings(),
                "outside": self.asked["outside"],
            }
            if self.asked["recording"]:
                with open(os.path.join(folder, "recording.json"), "w", encoding="utf-8") as out:
                    json.dump(self.asked["recording"], out)
            document["seconds"] = round(time.monotonic() - began, 1)
            about = {key: document[key] for key in ("name", "taken", "why", "seconds", "outside")}
            about["debs"] = len(found)
            size = store.finish(folder, document, about)
        except BaseException:
            store.abandon(folder)
            raise
        sources = [entry["from"] for entry in found.values()]
        self.result.update(bytes=size, debs={source: sources.count(source) for source in set(sources)})
        self.remove(store.surplus([*self.there, name], self.asked["keep"]))

    def room(self, packages):
        """No more than what they take unpacked is needed for their files, which are packed."""
        os.makedirs(store.ROOT, mode=0o700, exist_ok=True)
        short = space.short([(store.ROOT, SPARE + sum(each["size"] * 1024 for each in packages))])
        if short:
            raise OSError("not enough room on the disk: %s" % "; ".join(short))


def main():
    lines = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": ""},
            "why": {"type": "str", "default": ""},
            "paths": lines,
            "beside": lines,
            "units": lines,
            "recording": {"type": "dict", "default": {}},
            "outside": {"type": "dict", "default": {}},
            "keep": {"type": "int", "default": 5},
            "required": {"type": "bool", "default": True},
            "absent": lines,
        },
        supports_check_mode=True,
    )
    Taking(module).run()


if __name__ == "__main__":
    main()
