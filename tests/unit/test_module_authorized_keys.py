"""The module that adds keys, on files below a temporary folder, with the rights of whoever runs the tests."""

from __future__ import annotations

import importlib.util
import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ssh_hosts import KEY, KEY_2

FILE = Path(__file__).parents[2] / "plugins" / "modules" / "authorized_keys.py"
_spec = importlib.util.spec_from_file_location("on_host_authorized_keys", FILE)
assert _spec is not None
assert _spec.loader is not None
module: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(module)


@pytest.fixture
def ada(tmp_path: Path) -> Any:
    me = pwd.getpwuid(os.getuid())
    return SimpleNamespace(
        pw_name=me.pw_name, pw_uid=me.pw_uid, pw_gid=me.pw_gid, pw_dir=str(tmp_path / "ada")
    )


def add(account: Any, *keys: str, write: bool = True, pattern: str = ".ssh/authorized_keys") -> Any:
    file = module.Keys(account, module.path_of(pattern, account), write)
    file.count = file.add(list(keys))
    return file


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_home_folder_and_file_are_made_for_their_owner_alone(ada: Any, tmp_path: Path) -> None:
    file = add(ada, KEY, KEY_2)
    assert (file.changed, file.count) == (True, 2)
    there = tmp_path / "ada" / ".ssh" / "authorized_keys"
    assert there.read_text() == f"{KEY}\n{KEY_2}\n"
    assert [mode(p) for p in (tmp_path / "ada", there.parent, there)] == [0o700, 0o700, 0o600]
    again = add(ada, KEY_2, KEY)
    assert (again.changed, again.count) == (False, 0)


def test_keys_that_are_there_stay_byte_for_byte(ada: Any, tmp_path: Path) -> None:
    folder = tmp_path / "ada" / ".ssh"
    folder.mkdir(parents=True)
    old = f'# caf\xe9\ncommand="id" {KEY}'.encode("latin-1")
    (folder / "authorized_keys").write_bytes(old)
    add(ada, KEY_2)
    assert (folder / "authorized_keys").read_bytes() == old + f"\n{KEY_2}\n".encode()


def test_another_comment_is_the_same_key(ada: Any) -> None:
    add(ada, KEY)
    assert add(ada, f"{KEY} of mine").count == 0


def test_a_look_changes_nothing(ada: Any, tmp_path: Path) -> None:
    file = add(ada, KEY, write=False)
    assert (file.changed, file.count) == (True, 1)
    assert not (tmp_path / "ada").exists()


def test_what_others_may_write_to_is_tightened_and_nothing_loosened(ada: Any, tmp_path: Path) -> None:
    add(ada, KEY)
    home, folder = tmp_path / "ada", tmp_path / "ada" / ".ssh"
    file = folder / "authorized_keys"
    for path, bits in ((home, 0o777), (folder, 0o770), (file, 0o440)):
        path.chmod(bits)
    assert add(ada, KEY).changed
    assert [mode(p) for p in (home, folder, file)] == [0o755, 0o750, 0o440]
    assert not add(ada, KEY).changed


def test_a_link_in_place_of_the_file_is_followed(ada: Any, tmp_path: Path) -> None:
    folder = tmp_path / "ada" / ".ssh"
    folder.mkdir(parents=True)
    (tmp_path / "ada" / "dotfiles").write_text("")
    (folder / "authorized_keys").symlink_to("../dotfiles")
    add(ada, KEY)
    assert (folder / "authorized_keys").is_symlink()
    assert (tmp_path / "ada" / "dotfiles").read_text() == f"{KEY}\n"


def test_a_half_written_file_of_an_earlier_try_is_in_nobodys_way(ada: Any, tmp_path: Path) -> None:
    add(ada, KEY)
    (tmp_path / "ada" / ".ssh" / "authorized_keys.gpu-provision").write_text("half")
    add(ada, KEY_2)
    assert sorted(p.name for p in (tmp_path / "ada" / ".ssh").iterdir()) == ["authorized_keys"]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".ssh/authorized_keys", "{home}/.ssh/authorized_keys"),
        ("%h/.ssh/keys", "{home}/.ssh/keys"),
        ("/etc/ssh/keys/%u", "/etc/ssh/keys/{name}"),
        ("/keys/%U.%%u", "/keys/{uid}.%u"),
    ],
)
def test_where_sshd_looks(ada: Any, pattern: str, path: str) -> None:
    expected = path.format(home=ada.pw_dir, name=ada.pw_name, uid=ada.pw_uid)
    assert module.path_of(pattern, ada) == expected


def test_keys_elsewhere_can_be_read_by_sshd_and_the_home_is_left_alone(ada: Any, tmp_path: Path) -> None:
    file = add(ada, KEY, pattern=f"{tmp_path}/keys/%u")
    there = tmp_path / "keys" / ada.pw_name
    assert file.path == str(there)
    assert (mode(there), mode(there.parent)) == (0o644, 0o755)
    assert not (tmp_path / "ada").exists()


def test_no_files_at_all(ada: Any) -> None:
    with pytest.raises(module.Refused, match="AuthorizedKeysFile none"):
        module.path_of("none", ada)
