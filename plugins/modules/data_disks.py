#!/usr/bin/python
# Copyright (c) the gpu-provision authors
# SPDX-License-Identifier: Apache-2.0
"""Module data_disks: make file systems on named disks, mount them, and never touch anything else."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: data_disks
short_description: Make file systems on named disks and have them mounted at each boot
version_added: 0.1.0
author:
  - The gpu-provision authors (@gpu-provision)
description:
  - Looks at every disk again before the first byte is written. Each must have the serial number and size
    that it was planned with, and carry exactly the signatures that it was planned with; nothing on it may be
    mounted or used.
  - Holds the disks while it wipes them and makes the file systems, and writes down on the host what it
    began, so that a run that was cut off is gone on with.
  - Writes C(/etc/fstab) as a whole, and only where it is still the one that the new text was made from.
  - Mounts nothing over a folder that is not empty.
options:
  mounts:
    description: What the role's planner answers, one dictionary a mount.
    type: list
    elements: dict
    required: true
  fstab:
    description: The text that C(/etc/fstab) gets.
    type: str
    required: true
  fstab_was:
    description: SHA-256 of the text that it was made from.
    type: str
    required: true
extends_documentation_fragment:
  - action_common_attributes
attributes:
  check_mode:
    support: full
    details: All that could refuse is looked at.
  diff_mode:
    support: none
  platform:
    support: full
    platforms: posix
notes:
  - Called by the role data_disks; the planner's answer is of no use by hand.
"""

EXAMPLES = r"""
- name: Make what is missing, mount it, have it mounted at each boot
  gpu_provision.host.data_disks:
    mounts: "{{ data_disks_wanted.mounts }}"
    fstab: "{{ data_disks_wanted.files[0].text }}"
    fstab_was: "{{ data_disks_wanted.fstab_was }}"
"""

RETURN = r"""
did:
  description: What was done, in words and in order.
  returned: always
  type: list
  elements: str
"""

import signal

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu_provision.host.plugins.module_utils.data_disks import whole
from ansible_collections.gpu_provision.host.plugins.module_utils.data_disks.commands import Refused


def main():
    module = AnsibleModule(
        argument_spec={
            "mounts": {"type": "list", "elements": "dict", "required": True},
            "fstab": {"type": "str", "required": True},
            "fstab_was": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    # A line that drops must not end this half-way.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    did = []
    try:
        whole.work(module.params, check=module.check_mode, did=did)
    except (Refused, OSError) as e:
        module.fail_json(msg=str(e), changed=bool(did) and not module.check_mode, did=did)
    module.exit_json(changed=bool(did), did=did)


if __name__ == "__main__":
    main()
