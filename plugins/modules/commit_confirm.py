#!/usr/bin/python
# Copyright: the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""The host's side of the action plugin of the same name, and the documentation of both."""

from __future__ import annotations

DOCUMENTATION = r"""
module: commit_confirm
short_description: Change files that could cut the line, and keep the change only if one can still get in
description:
  - Keeps the old state, starts a timer that puts it back, writes the files, validates, makes them effective,
    and then logs in from the controller on a fresh OpenSSH connection by key alone. Only then the timer is
    stopped.
  - Whatever happens in between (a lost line, a killed controller, a reboot), the host goes back by itself.
  - Before anything changes, that same login has to work; else the task is refused and the host is untouched.
  - Where other tasks have to make the change, O(operation=arm) before and O(operation=confirm) after them do
    the same. What a task does after the host's timer fired is not put back, so leave them time.
  - On the host, C(sh /var/lib/gpu-provision/commit-confirm/commit-confirm.sh status) tells what is armed;
    C(confirm) and C(revert) in its place end it by hand.
  - One change a host at a time; a second one is refused and told who holds the host.
  - Needs systemd on the host, the C(ssh) connection plugin, and root.
options:
  operation:
    description:
      - C(change) does all of it. C(status) tells what is armed. C(revert) puts back now what is armed.
      - C(arm) keeps O(paths), O(units) and O(loaded) and starts the timer; it changes nothing itself.
      - C(confirm) makes the proofs from outside and stops the timer; where a proof fails it puts back.
    type: str
    choices: [change, arm, confirm, status, revert]
    default: change
  id:
    description: The change that C(confirm), C(revert) or C(status) is about, as C(arm) returned it; else the
      one that is armed.
    type: str
    default: ""
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
  loaded:
    description:
      - What the kernel holds and no file tells. It is kept as text, and loaded again after files and units
        are back.
      - After a reboot the old files and units load what they loaded before; only where the kernel stayed (a
        soft reboot) the kept text is loaded at boot, too.
      - What could not be loaded again (C(nft -c), C(iptables-restore --test)) is refused, and nothing
        changes.
    type: list
    elements: dict
    default: []
    suboptions:
      nft:
        description: One table, as C(inet filter), whether it is there now or not; or C(ruleset), which is all
          tables.
        type: str
      iptables:
        description: One table of iptables; rules that other programs add to it meanwhile are lost when it is
          put back.
        type: str
        choices: [filter, nat, mangle, raw]
      ip6tables:
        description: One table of ip6tables.
        type: str
        choices: [filter, nat, mangle, raw]
      save:
        description: A command of your own that prints the state.
        type: str
      restore:
        description: The command that reads on its standard input what C(save) printed.
        type: str
      absent:
        description: The command that puts back where C(save) failed, which then means that there is no such
          state.
        type: str
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
  load:
    description:
      - Commands that make the change effective and are not run again after putting back; O(loaded) is what
        undoes them.
      - The timer waits until one has ended (60 seconds at most). No shell reads them.
    type: list
    elements: str
    default: []
  reload:
    description: Commands that make the files effective, run after C(load), and again after putting back. No
      shell reads them.
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
    description: How long the host waits for the confirmation before it puts the old state back, from 5 to
      3600; 180 without it.
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

- name: Load a rule set without closing oneself out
  gpu_provision.host.commit_confirm:
    name: default deny
    files:
      - path: /etc/nftables.d/deny.nft
        text: "{{ lookup('template', 'deny.nft.j2') }}"
    loaded:
      - nft: inet deny
    validate:
      - command: nft -c -f /etc/nftables.d/deny.nft
    load: [nft -f /etc/nftables.d/deny.nft]
  become: true

- name: Keep what the next tasks change
  gpu_provision.host.commit_confirm:
    operation: arm
    name: another address
    paths: [/etc/network/interfaces]
    reload: [systemctl restart networking.service]
    seconds: 300
  register: armed
  become: true

- name: Prove that one still gets in, and keep it
  gpu_provision.host.commit_confirm:
    operation: confirm
    id: "{{ armed.id }}"
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
  returned: when something had to change, and for operations C(arm) and C(confirm)
remaining:
  description: Seconds that are left to confirm.
  type: float
  returned: for operation C(arm)
proofs:
  description: What the fresh connections showed, in words.
  type: list
  returned: when something had to change
armed:
  description: Who holds the host (C(id), C(name), C(holder)) and for how many more seconds; null when nobody
    does.
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
    arguments,
    arming,
    change,
    ending,
    files,
    snapshot,
    state,
)


def main() -> None:
    module = AnsibleModule(argument_spec=arguments.HOST, supports_check_mode=True)
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
        if step in ("apply", "arm"):
            make = change.apply if step == "apply" else change.arm_only
            left = make(places, arming.Request(module.params))
            module.exit_json(changed=True, state="armed", remaining=left)
        if step == "confirm":
            module.exit_json(changed=True, state=ending.confirm(places, module.params["id"]))
        module.exit_json(**ending.revert_all(places, module.params["id"]))
    except arming.Stopped as e:
        module.fail_json(msg=e.says, state=e.state)
    except snapshot.SnapshotError as e:
        module.fail_json(msg=str(e), state="untouched")


if __name__ == "__main__":
    main()
