"""Hosts and variables of a user's Ansible inventory, read by Ansible itself: any plugin, vault included."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..errors import Usage
from ..yaml_text import check, where
from .declared import declared

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class InventoryHost:
    """One host of the inventory: its variables as Ansible computes them, templates resolved."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]


class Inventory:
    """An inventory file or directory with the group_vars and host_vars beside it."""

    def __init__(self, source: str, vault_password_file: str | None = None) -> None:
        """Raises Usage where the inventory, or the vault password, cannot be read."""
        if not Path(source).exists() and "," not in source:
            raise Usage(f"inventory {source}: no such file or directory")
        _check_yaml(Path(source))
        _own_settings()
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.parsing.vault import get_file_vault_secret
        from ansible.vars.manager import VariableManager

        self._source, self._failure = source, AnsibleError
        self._vault = f"--vault-password-file{', another than this one' if vault_password_file else ''}"
        loader = DataLoader()
        try:
            secrets = []
            if vault_password_file:
                secret = get_file_vault_secret(filename=vault_password_file, loader=loader)
                secret.load()
                secrets = [("default", secret)]
            _unlock(loader, secrets)
            self._manager = InventoryManager(loader=loader, sources=[source])
            self._variables = VariableManager(loader=loader, inventory=self._manager)
        except AnsibleError as e:
            raise Usage(f"inventory {source}: {_plain(e)}") from e
        self._loader = loader

    def names(self) -> tuple[str, ...]:
        """Every host and group that can be asked for."""
        return (*self._manager.hosts, *self._manager.groups)

    def hosts(self, pattern: str) -> tuple[InventoryHost, ...]:
        """The host, or the hosts of the group, of exactly that name; empty where there is none.

        Raises Usage where a variable cannot be read (a vault without its password, a broken template).
        """
        if pattern in self._manager.groups:
            names = [str(h.name) for h in self._manager.groups[pattern].get_hosts()]
        elif pattern in self._manager.hosts:
            names = [pattern]
        else:
            return ()
        return tuple(self._host(name) for name in names)

    def members(self, name: str) -> tuple[tuple[str, Mapping[str, Any]], ...] | None:
        """Each host of a group, or the host, of that name with its variables; None where there is neither."""
        if name not in self.names():
            return None
        return tuple((host.name, host.variables) for host in self.hosts(name))

    def _host(self, name: str) -> InventoryHost:
        from ansible.template import Templar

        host = self._manager.get_host(name)
        try:
            raw = self._variables.get_vars(host=host)
            templar = Templar(loader=self._loader, variables=raw)
            # Only what we read is resolved: a stranger's variable may need a lookup that we must not run.
            values = {
                str(k): _untagged(templar.template(v)) if k in declared() or k.startswith("ansible_") else v
                for k, v in raw.items()
                if k not in _MAGIC
            }
        except self._failure as e:
            if "vault" in _plain(e).lower():
                # Ansible's own words are about its insides and differ between values and whole files.
                says = f"inventory {self._source}: something is encrypted by ansible-vault and cannot be read"
                raise Usage(says, host=name, do=f"give its password by {self._vault}") from e
            raise Usage(f"inventory {self._source}: {_plain(e)}", host=name) from e
        return InventoryHost(str(name), tuple(str(g.name) for g in host.get_groups()), values)


def _untagged(value: Any) -> Any:
    """The same as plain Python: from ansible-core 2.19 on, values are of subclasses that know where they came
    from, and YAML writes none of them.
    """
    if isinstance(value, dict):
        return {_untagged(k): _untagged(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_untagged(v) for v in value]
    plain = next((kind for kind in (str, int, float) if isinstance(value, kind)), None)
    return value if plain is None or isinstance(value, bool) else plain(value)


# What Ansible adds to every host's variables by itself; none of it says what a host is meant to be.
_MAGIC = frozenset(
    (
        *("ansible_check_mode", "ansible_config_file", "ansible_diff_mode", "ansible_facts", "ansible_forks"),
        *("ansible_inventory_sources", "ansible_limit", "ansible_playbook_python", "ansible_run_tags"),
        *("ansible_skip_tags", "ansible_verbosity", "ansible_version", "group_names", "groups", "hostvars"),
        *("inventory_dir", "inventory_file", "inventory_hostname", "inventory_hostname_short", "omit"),
        *("playbook_dir", "vars"),
    )
)


def _unlock(loader: Any, secrets: list[tuple[str, Any]]) -> None:
    """Open whole files, which the loader decrypts, and single values (`!vault`)."""
    from ansible.parsing import vault

    loader.set_vault_secrets(secrets)
    # From ansible-core 2.19 on, values look here. Its own way to set it serves once a process only.
    if hasattr(vault, "VaultSecretsContext"):
        vault.VaultSecretsContext._current = vault.VaultSecretsContext(secrets)


def _check_yaml(source: Path) -> None:
    """Raises Usage where a file is broken YAML, in one line; Ansible would try it as three other formats."""
    files = [source] if source.is_file() else [*source.glob("*")] if source.is_dir() else []
    beside = source if source.is_dir() else source.parent
    variables = [file for part in ("group_vars", "host_vars") for file in (beside / part).rglob("*")]
    for file in [*files, *variables]:
        # In the folders of variables a file without an ending is YAML too.
        endings = (".yml", ".yaml", "") if file in variables else (".yml", ".yaml")
        if file.suffix in endings and file.is_file():
            try:
                # Parsed and not loaded: tags such as !vault are Ansible's to understand.
                check(file.read_text(encoding="utf-8"))
            except (OSError, yaml.YAMLError, UnicodeDecodeError) as e:
                raise Usage(f"inventory {file}: {where(e)}") from e


def _own_settings() -> None:
    """Ansible reads its settings when it is first imported: the user's must not change what we read."""
    for name in [n for n in os.environ if n.startswith("ANSIBLE_")]:
        del os.environ[name]
    os.environ["ANSIBLE_CONFIG"] = str(Path(__file__).with_name("ansible.cfg"))


def _plain(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split())
