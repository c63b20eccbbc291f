from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.errors import Usage
from provision.lab import sources
from provision.lab.sources import Source, for_release

if TYPE_CHECKING:
    from pathlib import Path

LINES = """\
# deb http://old.example/debian bookworm main
deb http://mirror.example/debian/ bookworm main non-free-firmware # the release
deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://mirror.example/debian bookworm-updates main
deb-src http://mirror.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.example/apt bookworm main
deb http://docker.example/linux/debian bookworm stable
"""
DEB822 = """\
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

# a comment
Types: deb
URIs: http://security.example/debian-security/
Suites: bookworm-security
Components: main

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://vendor.example/apt
Suites: nodistro
Components: main
"""
WANTED = [
    Source("http://mirror.example/debian", "trixie"),
    Source("http://mirror.example/debian", "trixie-updates"),
    Source("http://security.example/debian-security", "trixie-security"),
]


@pytest.fixture(autouse=True)
def _no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sources.SOURCES_VARIABLE, raising=False)


def machine(tmp_path: Path, files: dict[str, str], kind: str = "debian bookworm") -> dict[str, Path]:
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    os_release = tmp_path / "os-release"
    name, codename = kind.split()
    os_release.write_text(f'NAME="Some"\nID={name}\nVERSION_CODENAME={codename}\n')
    return {"etc": tmp_path, "os_release": os_release}


@pytest.mark.parametrize(
    "files",
    [{"sources.list": LINES}, {"sources.list.d/debian.sources": DEB822}, {"sources.list.d/a.list": LINES}],
    ids=["one-line", "deb822", "folder"],
)
def test_machine_archives_with_the_wanted_release(tmp_path: Path, files: dict[str, str]) -> None:
    assert for_release("trixie", **machine(tmp_path, files)) == WANTED


def test_the_same_archive_named_twice_counts_once(tmp_path: Path) -> None:
    both = {"sources.list": LINES, "sources.list.d/debian.sources": DEB822}
    assert for_release("trixie", **machine(tmp_path, both)) == WANTED


def test_a_machine_of_another_kind_is_told_what_to_set(tmp_path: Path) -> None:
    ubuntu = {"sources.list": "deb http://archive.example/ubuntu noble main\n"}
    with pytest.raises(Usage, match=sources.SOURCES_VARIABLE) as caught:
        for_release("trixie", **machine(tmp_path, ubuntu, kind="ubuntu noble"))
    assert caught.value.exit_code == 2


def test_a_named_file_serves_on_any_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "mine.sources"
    named.write_text(DEB822)
    monkeypatch.setenv(sources.SOURCES_VARIABLE, str(named))
    assert for_release("trixie", **machine(tmp_path, {}, kind="ubuntu noble")) == WANTED


def test_all_components_are_asked_for() -> None:
    assert Source("http://m.example/debian", "trixie").line() == (
        "deb http://m.example/debian trixie main contrib non-free non-free-firmware"
    )
