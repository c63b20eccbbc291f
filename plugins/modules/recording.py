#!/usr/bin/python
"""Documentation of the action plugin of the same name, which does the work on the control machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recording
short_description: Record what a host looks like now
description:
  - Asks the host all questions of a recording (packages, kernels, modules, GPUs, disks, network, SSH,
    settings) with one program on one connection, and sets the answers as a fact.
  - Nothing on the host changes; it runs in check mode too.
  - What is read with C(become) is complete. Without it, what only root may read is marked as denied.
  - Passwords and tokens are masked on the host.
author: gpu-provision contributors
options: {}
attributes:
  check_mode:
    support: full
    description: Reading changes nothing.
"""

EXAMPLES = r"""
- name: Look at the host
  gpu_provision.host.recording:
  become: true

- name: Use an answer
  ansible.builtin.debug:
    msg: "{{ gpu_provision_recording['items']['dkms.status'] }}"
"""

RETURN = r"""
ansible_facts:
  description: The fact that is set.
  returned: success
  type: dict
  contains:
    gpu_provision_recording:
      description: The recording, of schema gpu-provision/recording/1.
      type: dict
      returned: success
"""
