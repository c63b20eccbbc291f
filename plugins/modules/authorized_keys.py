#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module authorized_keys: public keys of one account, added where its sshd looks for them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: authorized_keys
short_description: Add public keys to an account, where sshd looks for them, and take none away
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Adds the keys that the account's file lacks. Keys that are there stay, whosever they are.
  - Asks sshd which file that is (C(AuthorizedKeysFile)), makes home and folders where they are missing, and
    takes write permission from others, as sshd ignores keys below a folder that others may write to.
  - What lies in the home is written with the rights of the account, so that a link laid there leads nowhere
    that the account may not write itself.
options:
  user:
    description: The account. It has to be there.
    type: str
    required: true
  keys:
    description: Public keys, one line each, without options.
    type: list
    elements: str
    required: true
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    support: full
    platforms: posix
"""

EXAMPLES = r"""
- name: Let Ada in
  gpu_provision.host.authorized_keys:
    user: ada
    keys:
      - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5sTfOVVuU0vTgEI3iGHxBRlNiO7kDI6FBQ9WyZ6mUS ada@desk
"""

RETURN = r"""
path:
  description: The file that the keys are in.
  returned: always
  type: str
added:
  description: How many keys were not there.
  returned: always
  type: int
"""

import os
import pwd
import shutil
import stat
from contextlib import contextmanager

from ansible.module_utils.basic import AnsibleModule


class Refused(Exception):
    """Why the keys cannot be added."""


def path_of(pattern, account):
    """The first file of sshd's AuthorizedKeysFile, for this account (sshd_config(5), TOKENS)."""
    if pattern == "none":
        raise Refused("sshd reads no key files here (AuthorizedKeysFile none)")
    tokens = {"%%": "%", "%h": account.pw_dir, "%u": account.pw_name, "%U": str(account.pw_uid)}
    path, at = "", 0
    while at < len(pattern):
        token = tokens.get(pattern[at : at + 2])
        path, at = path + (token or pattern[at]), at + (2 if token else 1)
    return os.path.normpath(path if path.startswith("/") else os.path.join(account.pw_dir, path))


@contextmanager
def acting_as(account):
    """The rights of the account, and root's again afterwards. Without effect for one who is not root."""
    if os.geteuid() != 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.initgroups(account.pw_name, account.pw_gid)
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


class Keys:
    """One file of keys. `write` False looks only."""

    def __init__(self, account, path, write):
        self.account, self.write = account, write
        self.home = account.pw_dir
        self.inside = path.startswith(self.home.rstrip("/") + "/")
        self.path = path
        self.changed = False

    def add(self, keys):
        """Add those that are missing; how many they were."""
        if self.inside:
            self.make_home()
            with acting_as(self.account):
                return self.added(keys)
        return self.added(keys)

    def make_home(self):
        if os.path.isdir(self.home):
            return
        self.changed = True
        if self.write:
            os.makedirs(os.path.dirname(self.home), exist_ok=True)
            os.mkdir(self.home, 0o700)
            os.chown(self.home, self.account.pw_uid, self.account.pw_gid)

    def added(self, keys):
        if os.path.isdir(self.home) or not self.inside:
            self.path = os.path.realpath(self.path)
        self.folders()
        text = self.text()
        there = {blob(line) for line in text.splitlines()}
        missing = [key for key in dict.fromkeys(keys) if blob(key) not in there]
        if missing:
            self.changed = True
            if self.write:
                start = text if text.endswith("\n") or not text else text + "\n"
                self.replace(start + "".join("%s\n" % key for key in missing))
        if os.path.exists(self.path):
            self.tighten(self.path)
        return len(missing)

    def folders(self):
        """Make what is missing above the file, and let nobody else write there, up to the home."""
        missing, folder = [], os.path.dirname(self.path)
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        self.changed = self.changed or bool(missing)
        for each in reversed(missing if self.write else []):
            os.mkdir(each, 0o700 if self.inside else 0o755)
        if not self.inside:
            return
        folder = os.path.dirname(self.path)
        while os.path.isdir(folder) and folder.startswith(self.home):
            self.tighten(folder)
            folder = os.path.dirname(folder)

    def tighten(self, path):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o022:
            self.changed = True
            if self.write:
                os.chmod(path, mode & ~0o022)

    def text(self):
        try:
            # A byte that is no UTF-8 may stand in a comment, and comes back as it was.
            with open(self.path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def replace(self, text):
        """The whole file or the old one, with the old one's mode."""
        mode = stat.S_IMODE(os.stat(self.path).st_mode) if os.path.exists(self.path) else None
        half = self.path + ".gpu-provision"
        if os.path.lexists(half):
            os.unlink(half)  # left by a try that was killed
        try:
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(half, mode if mode is not None else 0o600 if self.inside else 0o644)
            os.replace(half, self.path)
        except OSError:
            if os.path.exists(half):
                os.unlink(half)
            raise


def blob(line):
    """The key of a line without options; the line itself where it is none."""
    words = line.split()
    return words[1] if len(words) > 1 and not line.startswith("#") else line


def pattern(module, user):
    rc, out, err = module.run_command(["sshd", "-T", "-C", "user=%s,host=localhost,addr=127.0.0.1" % user])
    found = [line.split()[1] for line in out.splitlines() if line.startswith("authorizedkeysfile ")]
    if rc != 0 or not found:
        raise Refused("sshd does not tell where it looks for keys: %s" % (err or out).strip())
    return found[0]


def main():
    module = AnsibleModule(
        argument_spec={
            "user": {"type": "str", "required": True},
            # They are public, whatever the word may sound like.
            "keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
        },
        supports_check_mode=True,
    )
    user = module.params["user"]
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        if not module.check_mode:
            module.fail_json(msg="there is no account %s" % user)
        module.exit_json(changed=True, path="", added=len(module.params["keys"]))  # made by the task before
    try:
        file = Keys(account, path_of(pattern(module, user), account), write=not module.check_mode)
        added = file.add(module.params["keys"])
    except Refused as e:
        module.fail_json(msg="%s: %s" % (user, e))
    except OSError as e:
        module.fail_json(msg="the keys of %s could not be written: %s: %s" % (user, e.filename, e.strerror))
    if file.changed and file.write and shutil.which("restorecon"):
        module.run_command(["restorecon", "-R", os.path.dirname(file.path)])
    module.exit_json(changed=file.changed, path=file.path, added=added)


if __name__ == "__main__":
    main()
