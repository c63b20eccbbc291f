"""How Ansible is set up for a run: a configuration of its own, nothing of the user's Ansible settings."""

from __future__ import annotations

import configparser
import os
from typing import TYPE_CHECKING

from ..profile import tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What Ansible and OpenSSH need of the caller's environment. ANSIBLE_* and PYTHON* are left out on purpose.
KEPT = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "TERM",
        "XDG_RUNTIME_DIR",
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "SSH_ASKPASS",
        "SSH_ASKPASS_REQUIRE",
        "SSH_SK_PROVIDER",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "KRB5CCNAME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ]
)


def environment(run_dir: Path, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of ansible-playbook; its locale is not the caller's, for Ansible insists on UTF-8."""
    source = os.environ if environ is None else environ
    return {
        **{name: value for name, value in source.items() if name in KEPT},
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": str(run_dir / "ansible.cfg"),
        "ANSIBLE_HOME": str(run_dir / "ansible-home"),
    }


def write(run_dir: Path, *, forks: int) -> None:
    """Write run_dir/ansible.cfg and link the collection below run_dir/collections, where Ansible finds it.

    Running `ansible-playbook -i inventory.yml gpu_provision.host.site` in the run directory repeats
    the run by hand.
    """
    collections = run_dir / "collections"
    link = collections / "ansible_collections" / tree.NAMESPACE / tree.NAME
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(tree.root(), target_is_directory=True)
    config = configparser.ConfigParser(interpolation=None)
    config["defaults"] = {
        "collections_path": str(collections),
        "collections_scan_sys_path": "false",
        "forks": str(forks),
        # Each host goes at its own pace: one that builds a module does not hold up the others.
        "strategy": "ansible.builtin.host_pinned",
        "stdout_callback": "gpu_provision.host.events",
        "gathering": "explicit",
        "host_key_checking": "true",
        "retry_files_enabled": "false",
        "deprecation_warnings": "false",
        "nocows": "true",
        "nocolor": "true",
        "timeout": "15",
        # Seconds between two looks at the workers; at the default of 0.001 waiting takes a tenth of a core.
        "internal_poll_interval": "0.01",
    }
    config["inventory"] = {"enable_plugins": "ansible.builtin.yaml", "any_unparsed_is_failed": "true"}
    config["connection"] = {"pipelining": "true"}
    config["ssh_connection"] = {"pipelining": "true", "retries": "2"}
    file = run_dir / "ansible.cfg"
    file.touch(mode=0o600)
    with file.open("w", encoding="utf-8") as out:
        config.write(out)
