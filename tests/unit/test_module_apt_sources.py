"""Which keys apt_sources takes, and from where. What apt makes of them is tried on lab hosts."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils import openpgp

FILE = Path(__file__).parents[2] / "plugins" / "modules" / "apt_sources.py"
_spec = importlib.util.spec_from_file_location("on_host_apt_sources", FILE)
assert _spec is not None
assert _spec.loader is not None
apt_sources: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(apt_sources)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)

    def gpg(*words: str) -> str:
        argv = ["gpg", "--homedir", str(home), "--batch", "--quiet", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    gpg("--passphrase", "", "--quick-generate-key", "mirror@example", "rsa2048", "sign", "never")
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    return gpg("--armor", "--export")


def module(**more: Any) -> Any:
    """What Ansible's fetch_url asks of a module."""
    return SimpleNamespace(params={}, tmpdir="/tmp", check_mode=True, **more)


def key(folder: Path, *fingerprints: str, name: str = "key.asc") -> dict[str, Any]:
    return {
        "path": "/k",
        "urls": [f"file://{folder}/absent.asc", f"file://{folder}/{name}"],
        "fingerprints": list(fingerprints),
    }


def test_a_key_may_lie_on_the_host_itself(tmp_path: Path, text: str) -> None:
    (tmp_path / "key.asc").write_text(text)
    assert apt_sources.fetched(module(), key(tmp_path, *openpgp.fingerprints(text))) == text


def test_without_a_fingerprint_any_key_is_taken_that_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "key.asc").write_text(text)
    assert apt_sources.fetched(module(), key(tmp_path)) == text
    (tmp_path / "page.asc").write_text("<html>not found</html>")
    with pytest.raises(apt_sources.Refused, match="no PGP public key block"):
        apt_sources.fetched(module(), key(tmp_path, name="page.asc"))


def test_another_key_is_refused_by_its_fingerprint(tmp_path: Path, text: str) -> None:
    (tmp_path / "key.asc").write_text(text)
    with pytest.raises(apt_sources.Refused) as told:
        apt_sources.fetched(module(), key(tmp_path, "0" * 40))
    assert openpgp.fingerprints(text)[0] in str(told.value)
    assert "absent.asc" in str(told.value)


def test_a_key_of_no_fingerprint_is_fetched_anew_with_a_changed_file(tmp_path: Path, text: str) -> None:
    kept = tmp_path / "kept.asc"
    kept.write_text(text)
    entry = tmp_path / "mirror.sources"
    entry.write_text("old\n")
    entry.chmod(0o644)
    wanted = {"path": str(entry), "text": "old\n", "mode": "0644"}
    asked = {"files": [wanted], "keys": [{**key(tmp_path), "path": str(kept)}], "refresh": False}
    looking = SimpleNamespace(params=asked, check_mode=True)
    assert apt_sources.change(looking) == []
    wanted["text"] = "new\n"
    assert apt_sources.change(looking) == sorted([str(entry), str(kept)])
