#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module apt_sources: sources, keys and pins of apt as one change, taken back where apt cannot use it."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: apt_sources
short_description: Sources, keys and pins of apt as one change, taken back where apt cannot use it
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Writes and removes files below C(/etc/apt), fetches the keys that they name, and has apt read its sources.
  - Where apt then cannot read its sources, or not those that this call wrote, everything is put back and
    apt's own words are told. One unusable entry would otherwise end all use of apt on the host.
  - A fetched key is kept only if its fingerprint is one of those that were named. Where none was named, any
    whole key is, and it is fetched again whenever a file changes.
options:
  files:
    description: The files; what has no text must not be there.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where the file is.
        type: path
        required: true
      text:
        description: The whole text; nothing where the file must not be there.
        type: str
      mode:
        description: Permissions.
        type: str
        default: "0644"
      owner:
        description: Kept for the shape of a planner's answer; files of apt are root's.
        type: str
        default: root
  keys:
    description: Keys to be fetched, in ASCII armor.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where the key is kept.
        type: path
        required: true
      urls:
        description: Addresses, tried in turn until one has the key.
        type: list
        elements: str
        required: true
      fingerprints:
        description: Fingerprints, one of which the key must have; none where its address is trusted.
        type: list
        elements: str
        default: []
  refresh:
    description: Have apt fetch its lists even where nothing was changed.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for another process to let go of apt's locks.
    type: int
    default: 600
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
    details: Tells which files would change. Nothing is fetched.
  diff_mode:
    support: none
  platform:
    support: full
    platforms: debian
"""

EXAMPLES = r"""
- name: Give apt a mirror
  gpu_provision.host.apt_sources:
    files:
      - path: /etc/apt/sources.list.d/mirror.sources
        text: |
          Types: deb
          URIs: https://mirror.example/cuda/debian12/x86_64/
          Suites: /
          Signed-By: /etc/apt/keyrings/mirror.asc
    keys:
      - path: /etc/apt/keyrings/mirror.asc
        urls: [https://mirror.example/key.asc]
        fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
"""

RETURN = r"""
paths:
  description: Files that were written, fetched or removed.
  returned: success
  type: list
  elements: str
"""

import os
import re
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url
from ansible_collections.gpu_provision.host.plugins.module_utils import apt, locks, openpgp

_LIMIT = 1 << 20  # bytes; a key is a few thousand


class Refused(Exception):
    """Why the change cannot be made; holds words for a person."""


def read(path):
    """The text of a file, or None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return None


def put(path, text, mode=0o644):
    """Put a whole file in place at once, or take it away."""
    if text is None:
        if os.path.lexists(path):
            os.unlink(path)
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, half = tempfile.mkstemp(dir=folder, prefix=".gpu-provision-")
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.chmod(half, mode)
    os.rename(half, path)


def good(text, key):
    """Whether a text is one of the keys that are wanted; any key is where none is named."""
    try:
        found = openpgp.fingerprints(text)
    except openpgp.NotAKey:
        return False
    return bool(found) and (not key["fingerprints"] or all(each in key["fingerprints"] for each in found))


def fetched(module, key):
    """The text of a key. Raises Refused where no address has it."""
    told = []
    for url in key["urls"]:
        answer, info = fetch_url(module, url, timeout=30)
        # A file has no status; where there is none, there is no answer.
        if answer is None or info["status"] not in (None, 200):
            told.append("%s: %s" % (url, info.get("msg", info["status"])))
            continue
        text = answer.read(_LIMIT).decode("utf-8", "replace")
        if good(text, key):
            return text if text.endswith("\n") else text + "\n"
        try:
            what = "its fingerprint is %s" % ", ".join(openpgp.fingerprints(text))
        except openpgp.NotAKey as e:
            what = str(e)
        told.append("%s is not the key that was expected: %s" % (url, what))
    raise Refused("No key could be fetched; nothing was changed.\n%s" % "\n".join(told))


def changes(module):
    """{path: (text or None, mode)} of what is not as wanted yet."""
    found = {}
    for file in module.params["files"]:
        now = read(file["path"])
        if now != file["text"] or (now is not None and _mode(file["path"]) != int(file["mode"], 8)):
            found[file["path"]] = (file["text"], int(file["mode"], 8))
    return found


def _mode(path):
    return os.stat(path).st_mode & 0o7777


def failing(trouble, texts):
    """Whether apt's words are about a source that these texts name, or about all of them."""
    if "could not be read" in trouble:
        return True
    uris = [uri for text in texts if text for uri in re.findall(r"[a-z]+:/\S+", text)]
    return any(uri.rstrip("/") in trouble for uri in uris)


def change(module):
    wanted = changes(module)
    lacking = [
        key
        for key in module.params["keys"]
        if not good(read(key["path"]) or "", key) or (wanted and not key["fingerprints"])
    ]
    paths = sorted([*wanted, *(key["path"] for key in lacking)])
    if module.check_mode or not (paths or module.params["refresh"]):
        return paths
    wanted.update({key["path"]: (fetched(module, key), 0o644) for key in lacking})
    before = {path: read(path) for path in wanted}
    waited, holder, free = locks.wait(module.params["lock_timeout"])
    if not free:
        raise Refused(
            "%s is held by process %d (%s) and was not freed in %d s; nothing was changed. Run this again "
            "when it has ended." % (holder["path"], holder["pid"], holder["command"] or "gone", waited)
        )
    for path, (text, mode) in wanted.items():
        put(path, text, mode)
    trouble = apt.update()
    if trouble and failing(trouble, [file["text"] for file in module.params["files"]]):
        for path, text in before.items():
            put(path, text)
        if paths:
            apt.update()
        raise Refused("apt cannot use these sources, and what this wrote was taken back:\n%s" % trouble)
    if trouble:
        module.warn("apt-get update: %s" % trouble)
    return paths


def main():
    file = {
        "path": {"type": "path", "required": True},
        "text": {"type": "str"},
        "mode": {"type": "str", "default": "0644"},
        "owner": {"type": "str", "default": "root"},
    }
    key = {
        "path": {"type": "path", "required": True},
        "urls": {"type": "list", "elements": "str", "required": True},
        "fingerprints": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "default": [], "options": file},
            "keys": {"type": "list", "elements": "dict", "default": [], "options": key, "no_log": False},
            "refresh": {"type": "bool", "default": False},
            "lock_timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    try:
        paths = change(module)
    except Refused as e:
        module.fail_json(msg=str(e))
    module.exit_json(changed=bool(paths), paths=paths)


if __name__ == "__main__":
    main()
