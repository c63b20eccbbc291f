#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module docker_settings: settings merged into daemon.json, and a docker that comes back with them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: docker_settings
short_description: Merge settings into docker's daemon.json, without loss and without losing docker
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Merges settings into C(/etc/docker/daemon.json) as JSON. Other keys, their order, the indentation, mode
    and owner of the file stay; a symbolic link stays one. Copies of old files are kept in
    C(/var/lib/gpu-provision/docker).
  - Refuses, with line and column, a file that is not JSON or not UTF-8, or has a name twice in one object.
  - Asks C(dockerd --validate) before the file is replaced, where that docker has it (23.0 and newer).
  - Restarts docker where something changed, where an earlier run could not, or where it started before the
    container toolkit came. Where docker does not come back, the old file is put back, and docker started
    with it.
  - Restarts nothing while containers run that would end with it, unless that is allowed.
options:
  settings:
    description:
      - Settings by key. Of C(runtimes) and C(default-ulimits) each entry is a setting of its own. The program
        of a runtime must be on the host.
    type: dict
    default: {}
  remove:
    description: Paths of keys to take out, each as a list of one or two names.
    type: list
    elements: list
    default: []
  interrupt:
    description: Whether docker may be restarted although that ends running containers.
    type: bool
    default: false
  after:
    description: A program that docker looks for only as it starts. One that started earlier is restarted.
    type: path
  patience:
    description: Seconds that docker has to come back.
    type: int
    default: 90
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
    details: Programs of runtimes are not looked for, as they may be installed by what is only looked at.
  diff_mode:
    support: none
    details: The file may hold passwords. The keys that change are returned.
  platform:
    support: full
    platforms: posix
notes:
  - Needs systemd, which runs docker, and the right to write the file.
"""

EXAMPLES = r"""
- name: Give containers more shared memory
  gpu_provision.host.docker_settings:
    settings:
      default-shm-size: 16G
      default-ulimits:
        memlock: {Name: memlock, Hard: -1, Soft: -1}
"""

RETURN = r"""
keys:
  description: The settings that changed.
  returned: always
  type: list
  elements: str
restarted:
  description: Whether docker was restarted.
  returned: always
  type: bool
backup:
  description: Where the copy of the old file is.
  returned: when there was a file and it changed
  type: str
"""

import os
import shutil
import signal
import stat
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils import daemon_json, docker_service

PATH = "/etc/docker/daemon.json"
STATE = "/var/lib/gpu-provision/docker"
_KEPT = 5


class Settings:
    """One call of the module."""

    def __init__(self, module):
        self.module, self.asked = module, module.params
        self.result = {"changed": False, "keys": [], "restarted": False}
        self.marker = os.path.join(STATE, "unapplied")

    def fail(self, msg):
        self.module.fail_json(msg=msg, **self.result)

    def run(self):
        # A line that drops must not end this between the file and the daemon.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        real, raw = self.file()
        try:
            now, sound = daemon_json.read(raw or b"")
        except daemon_json.Refused as e:
            self.fail(
                "%s is left as it is, and docker is not restarted: %s. Mend it by hand first." % (PATH, e)
            )
        new = daemon_json.merged(now, self.asked["settings"], self.asked["remove"])
        self.result["keys"] = daemon_json.changes(now, new)
        writes = now != new or (raw is not None and not sound)
        # Not by the file alone: what an earlier run wrote, and docker has not read, is still to be applied.
        restarts = writes or os.path.exists(self.marker) or self.older() or not docker_service.active()
        self.result["changed"] = writes or restarts
        if not self.result["changed"] or self.module.check_mode:
            self.module.exit_json(**self.result)
        self.programs()
        self.allowed()
        if writes:
            self.replace(real, raw, daemon_json.write(new, raw or b""))
        self.restart(real, raw if writes else None, written=writes)
        self.module.exit_json(**self.result)

    def file(self):
        """The file behind the path and its bytes, None where there is none."""
        real = os.path.realpath(PATH)
        try:
            status = os.stat(real)
        except FileNotFoundError:
            return real, None
        except OSError as e:
            self.fail("%s cannot be looked at: %s" % (PATH, e.strerror))
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            self.fail("%s is %s, which docker cannot read; remove it or put it aside first" % (PATH, kind))
        try:
            with open(real, "rb") as handle:
                return real, handle.read()
        except OSError as e:
            self.fail("%s cannot be read: %s" % (PATH, e.strerror))

    def older(self):
        """Whether docker started before the program that it looks for then."""
        program, began = self.asked["after"], docker_service.started()
        return bool(
            program and os.path.exists(program) and began is not None and began < os.stat(program).st_ctime
        )

    def programs(self):
        for name, entry in self.asked["settings"].get("runtimes", {}).items():
            if shutil.which(entry["path"]) is None:
                self.fail("The runtime %s is not set up: its program %s is not there" % (name, entry["path"]))

    def allowed(self):
        if self.asked["interrupt"] or not docker_service.active():
            return
        count, outlive = docker_service.running()
        if count == 0 or outlive:
            return
        told = "it does not say whether containers run" if count is None else "%d containers run" % count
        self.fail("docker has to be restarted, and %s, which that would end; nothing was changed" % told)

    def replace(self, real, raw, text):
        """The new text in the file's place, once docker has nothing against it."""
        folder, name = os.path.split(real)
        scratch = os.path.join(folder, ".%s.gpu-provision" % name)
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            with open(scratch, "wb") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            if raw is None:
                os.chmod(scratch, 0o644)
            else:
                shutil.copystat(real, scratch)
                os.chown(scratch, os.stat(real).st_uid, os.stat(real).st_gid)
                os.utime(scratch)
            self.validate(scratch)
            self.keep(raw)
            with open(self.marker, "w") as marker:
                marker.write("%s was written and docker not yet started with it\n" % PATH)
            os.replace(scratch, real)
        except OSError as e:
            self.undo(scratch)
            self.fail(
                "%s cannot be replaced, and is as it was: %s. A file that is immutable (`lsattr`, "
                "`chattr -i`) or on "
                "a mount that is read-only has somebody else who writes it." % (real, e.strerror)
            )

    def undo(self, scratch):
        for path in (scratch, self.marker):
            if os.path.lexists(path):
                os.unlink(path)

    def validate(self, scratch):
        said = docker_service.validate(scratch)
        if said is not None:
            self.undo(scratch)
            self.fail("docker would not start with the settings, so nothing was changed: %s" % said)

    def keep(self, raw):
        os.makedirs(STATE, mode=0o700, exist_ok=True)
        if raw is None:
            return
        older = sorted(name for name in os.listdir(STATE) if name.startswith("daemon.json."))
        for name in older[: max(0, len(older) - _KEPT + 1)]:
            os.unlink(os.path.join(STATE, name))
        backup = os.path.join(STATE, "daemon.json.%d" % time.time_ns())
        with open(os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(raw)
        self.result["backup"] = backup

    def restart(self, real, raw, *, written):
        words = docker_service.restart(self.asked["patience"])
        self.result["restarted"] = True
        if words is None:
            self.undo(self.marker)
            return
        if not written:
            self.fail("docker did not come back: %s" % words)
        if raw is None:
            os.unlink(real)
        else:
            status = os.stat(real)
            with open(real + ".gpu-provision-back", "wb") as out:
                out.write(raw)
            os.chmod(out.name, stat.S_IMODE(status.st_mode))
            os.chown(out.name, status.st_uid, status.st_gid)
            os.replace(out.name, real)
        again = docker_service.restart(self.asked["patience"])
        self.undo(self.marker)
        back = (
            "docker runs with it again"
            if again is None
            else "docker does not start with it either: %s" % again
        )
        self.fail(
            "docker did not start with the new settings: %s\nThe old file was put back; %s." % (words, back)
        )


def main():
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "default": {}},
            "remove": {"type": "list", "elements": "list", "default": []},
            "interrupt": {"type": "bool", "default": False},
            "after": {"type": "path"},
            "patience": {"type": "int", "default": 90},
        },
        supports_check_mode=True,
    )
    Settings(module).run()


if __name__ == "__main__":
    main()
