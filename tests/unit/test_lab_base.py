from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.errors import Failure
from provision.lab import base, sources
from provision.lab.place import Place
from provision.lab.sources import Source

if TYPE_CHECKING:
    from collections.abc import Sequence


class Builder:
    """Stands for mmdebstrap: makes a root as far as the lab writes in it, or breaks on the way."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.breaks = False

    def __call__(self, argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in argv]
        if "mmdebstrap" in words:
            root = next(Path(word) for word in words if word.endswith("/root"))
            (root / "etc/apt/sources.list.d").mkdir(parents=True)
            (root / "etc/apt/apt.conf.d").mkdir()
            (root / "etc/apt/sources.list").write_text(words[-1])
            self.built.append(words[words.index(str(root)) - 1])
            if self.breaks:
                raise Failure("mmdebstrap ended with code 25")
        return subprocess.CompletedProcess(words, 0, "", "")


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    builder = Builder()
    monkeypatch.setattr(base, "run", builder)
    archive = {
        release: [
            Source("http://mirror.example/debian", release),
            Source("http://s.example", f"{release}-security"),
        ]
        for release in base.RELEASES
    }
    monkeypatch.setattr(sources, "for_release", archive.__getitem__)
    monkeypatch.setattr(sources, "apt_settings", lambda: 'Acquire::Retries "3";\n')
    return builder


def test_built_once_for_each_release(tmp_path: Path, builder: Builder) -> None:
    lab = Place(tmp_path)
    said: list[str] = []
    first = base.ensure(lab, "bookworm", said.append)
    assert base.ensure(lab, "bookworm", said.append) == first
    assert base.ensure(lab, "trixie", said.append) != first
    assert builder.built == ["bookworm", "trixie"]
    assert len(said) == 2


def test_apt_of_the_host_reaches_the_archive_as_the_machine_does(tmp_path: Path, builder: Builder) -> None:
    lab = Place(tmp_path)
    old, new = (base.ensure(lab, release) / "etc/apt" for release in ("bookworm", "trixie"))
    assert (old / "sources.list").read_text().splitlines() == [
        "deb http://mirror.example/debian bookworm main contrib non-free non-free-firmware",
        "deb http://s.example bookworm-security main contrib non-free non-free-firmware",
    ]
    stanzas = sources.read_text((new / "sources.list.d/debian.sources").read_text())
    assert [(uri, suite) for uri, suite, _, _ in stanzas] == [
        ("http://mirror.example/debian", "trixie"),
        ("http://s.example", "trixie-security"),
    ]
    assert not (new / "sources.list").exists()
    assert (old / "apt.conf.d/90machine").read_text() == 'Acquire::Retries "3";\n'


def test_certificates_come_along_where_the_archive_is_https(
    tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("a certificate\n")
    monkeypatch.setattr(sources, "certificates", lambda: bundle)
    monkeypatch.setattr(
        sources, "for_release", lambda release: [Source("https://mirror.example/debian", release)]
    )
    etc = base.ensure(Place(tmp_path / "lab"), "bookworm") / "etc/apt"
    assert (etc / "machine-certificates.pem").read_text() == "a certificate\n"
    assert "CAInfo" in (etc / "apt.conf.d/90machine").read_text()


def test_a_build_that_broke_is_never_used(tmp_path: Path, builder: Builder) -> None:
    lab = Place(tmp_path)
    builder.breaks = True
    with pytest.raises(Failure):
        base.ensure(lab, "bookworm")
    builder.breaks = False
    root = base.ensure(lab, "bookworm")
    assert builder.built == ["bookworm", "bookworm"]
    assert sorted(path.name for path in lab.bases.iterdir()) == [root.name, "bookworm.lock"]


def test_a_new_recipe_is_built_and_the_old_root_goes_when_no_host_stands_on_it(
    tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Place(tmp_path)
    old = base.ensure(lab, "bookworm")
    other = base.ensure(lab, "trixie")
    monkeypatch.setattr(base, "PACKAGES", (*base.PACKAGES, "tree"))
    new = base.ensure(lab, "bookworm")
    assert new != old
    base.forget_old(lab, {old.name})
    assert old.exists()
    base.forget_old(lab, {new.name})
    assert [old.exists(), new.exists(), other.exists()] == [False, True, True]
