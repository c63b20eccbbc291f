#!/usr/bin/python
# Copyright: the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""The host's side of the action plugin of the same name, and the documentation of both."""

from __future__ import annotations

DOCUMENTATION = r"""
module: commit_confirm
short_description: Change files that could cut the line, and keep the change only if one can still get in
description:
  - Keeps the old state, starts a timer that puts it back, writes the files, validates, reloads, and then
    logs in from the controller on a fresh OpenSSH connection by key alone. Only then the timer is stopped.
  - Whatever happens in between (a lost line, a killed controller, a reboot), the host goes back by itself.
  - Before anything changes, that same login has to work; else the task is refused and the host is untouched.
  - Needs systemd on the host, the C(ssh) connection plugin, and root.
options:
  operation:
    description:
      - C(change) does all of it. C(status) tells what is armed. C(revert) puts back now what is armed.
    type: str
    choices: [change, status, revert]
    default: change
  name:
    description: What is being changed, in words; it is shown to whoever finds the host locked.
    type: str
    default: ""
  files:
    description: The files to write.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path. A file behind a symbolic link is changed there.
        type: path
        required: true
      text:
        description: The whole text; with neither it nor C(first_line) the file must not be there.
        type: str
      first_line:
        description: A line that has to be the file's first; the rest of the file stays byte for byte.
        type: str
      mode:
        description: Octal mode; without it the file keeps its mode, and a new one gets C(0644).
        type: str
      owner:
        description: Owner; without it the file keeps its owner, and a new one is root's.
        type: str
  paths:
    description: Further files that the reload may change; they are put back as well.
    type: list
    elements: path
    default: []
  units:
    description: Units whose enabled and active states are put back as well.
    type: list
    elements: str
    default: []
  validate:
    description: Commands that have to succeed after writing and before the reload. No shell reads them.
    type: list
    elements: dict
    default: []
    suboptions:
      command:
        description: The command.
        type: str
        required: true
      lines:
        description: Lines that it has to print, in any order; case and spacing do not matter.
        type: list
        elements: str
        default: []
  reload:
    description: Commands that make the files effective, run again after putting back. No shell reads them.
    type: list
    elements: str
    default: []
  prove:
    description: What else, beside the fresh login, has to hold from outside before the change is kept.
    type: dict
    default: {}
    suboptions:
      password_refused:
        description: The server offers neither C(password) nor C(keyboard-interactive) to this user.
        type: bool
        default: false
      administrator:
        description: The login is not root's; refused beforehand otherwise.
        type: bool
        default: false
  seconds:
    description:
      - How long the host waits for the confirmation before it puts the old state back, from 5 to 3600.
      - Without it the variable C(gpu_provision_confirm_seconds) counts, and without that 180.
    type: int
author: The gpu-provision authors (@gpu-provision)
"""

EXAMPLES = r"""
- name: Close passwords without closing oneself out
  gpu_provision.host.commit_confirm:
    name: key-only SSH
    files:
      - path: /etc/ssh/sshd_config.d/00-key-only.conf
        text: "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        mode: "0600"
    validate:
      - command: sshd -t
      - command: sshd -T -C user=root,host=localhost,addr=127.0.0.1
        lines: [passwordauthentication no, kbdinteractiveauthentication no]
    reload: [systemctl try-reload-or-restart ssh.service]
    units: [ssh.service]
    prove: {password_refused: true}
  become: true
"""

RETURN = r"""
state:
  description:
    - What is true on the host. C(untouched), C(done) or C(reverted); C(armed) where the host could not be
      reached any more and puts the old state back by itself; C(reverting) where that did not succeed and the
      next boot tries again.
  type: str
  returned: always
id:
  description: The name of this change in the host's state directory.
  type: str
  returned: when something had to change
proofs:
  description: What the fresh connections showed, in words.
  type: list
  returned: when something had to change
armed:
  description: Who holds the host and for how many more seconds; null when nobody does.
  type: dict
  returned: for operation C(status)
last:
  description: How the last change ended.
  type: dict
  returned: for operation C(status)
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils.commit_confirm import (
    change,
    files,
    snapshot,
    state,
)

# What the action plugin orders, step by step; `status` and `revert` are the public operations.
STEPS = ["plan", "apply", "confirm", "revert", "status"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": STEPS, "required": True},
            "id": {"type": "str", "default": ""},
            "holder": {"type": "str", "default": ""},
            "name": {"type": "str", "default": ""},
            "seconds": {"type": "int", "default": 180},
            "files": {
                "type": "list", "elements": "dict", "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "text": {"type": "str"},
                    "first_line": {"type": "str"},
                    "mode": {"type": "str"},
                    "owner": {"type": "str"},
                },
                "mutually_exclusive": [("text", "first_line")],
            },
            "paths": {"type": "list", "elements": "path", "default": []},
            "units": {"type": "list", "elements": "str", "default": []},
            "validate": {
                "type": "list", "elements": "dict", "default": [],
                "options": {
                    "command": {"type": "str", "required": True},
                    "lines": {"type": "list", "elements": "str", "default": []},
                },
            },
            "reload": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )  # fmt: skip
    if os.geteuid() != 0:
        module.fail_json(msg="commit_confirm needs root on the host (become: true)", state="untouched")
    places = state.Places()
    step = module.params["step"]
    try:
        if step == "plan":
            found = files.differences(module.params["files"])
            module.exit_json(differences=[files.shown(difference) for difference in found])
        if step == "status":
            module.exit_json(state_of=state.state_of(places, module.params["id"]), **state.status(places))
        if step == "apply":
            left = change.apply(places, change.Request(module.params))
            module.exit_json(changed=True, state="armed", remaining=left)
        if step == "confirm":
            module.exit_json(changed=True, state=change.confirm(places, module.params["id"]))
        module.exit_json(**change.revert_all(places, module.params["id"]))
    except change.Stopped as e:
        module.fail_json(msg=e.says, state=e.state)
    except snapshot.SnapshotError as e:
        module.fail_json(msg=str(e), state="untouched")


if __name__ == "__main__":
    main()
