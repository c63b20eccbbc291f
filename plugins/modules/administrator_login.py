#!/usr/bin/python
"""Documentation of the action plugin of the same name, which does the work on the control machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: administrator_login
short_description: Prove by a fresh login that administrators get in and may become root
description:
  - Logs in as each administrator from the control machine, by plain OpenSSH, on a connection of its own,
    with a key alone, and becomes root by sudo where that is asked for. Fails where one does not get that far.
  - An administrator whose private key cannot be used on the control machine is told as not proven; that is no
    failure, as others hold that key.
  - Needs the C(ssh) connection plugin. Nothing on the host changes, and nothing is tried in check mode.
author: The gpu-provision authors (@gpu-provision)
options:
  administrators:
    description: Whom to try.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The account.
        type: str
        required: true
      keys:
        description: Its public keys, one line each.
        type: list
        elements: str
        required: true
      sudo:
        description: Whether it has to become root, without a password.
        type: bool
        default: true
"""

EXAMPLES = r"""
- name: Prove that Ada gets in
  gpu_provision.host.administrator_login:
    administrators:
      - name: ada
        keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5sTfOVVuU0vTgEI3iGHxBRlNiO7kDI6FBQ9WyZ6mUS ada@desk"]
"""

RETURN = r"""
proofs:
  description: What was shown of each administrator, in words.
  returned: always
  type: dict
"""
