"""The fingerprints of keys, beside what gpg says of the same keys."""

from __future__ import annotations

import subprocess

import pytest

from plugins.module_utils import openpgp


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Two keys in one armored file, and their fingerprints as gpg says them."""
    home = tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)

    def gpg(*words: str) -> str:
        argv = ["gpg", "--homedir", str(home), "--batch", "--quiet", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    for name, kind in (("one", "rsa2048"), ("two", "ed25519")):
        gpg("--passphrase", "", "--quick-generate-key", f"{name}@example", kind, "sign", "never")
    listed = gpg("--with-colons", "--list-keys").splitlines()
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    return gpg("--armor", "--export"), [line.split(":")[9] for line in listed if line.startswith("fpr")]


def test_the_fingerprints_are_gpgs(key: tuple[str, list[str]]) -> None:
    text, told = key
    assert openpgp.fingerprints(text) == told


def test_line_ends_of_another_system_and_words_around_do_not_matter(key: tuple[str, list[str]]) -> None:
    text, told = key
    assert openpgp.fingerprints("words before\n" + text.replace("\n", "\r\n") + "words after\n") == told


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda _: "<html>404 not found</html>", "no PGP public key block"),
        (lambda text: text.replace("\n\n", "\n\n!!!!\n", 1), "damaged"),
        (lambda text: text[:200] + "\n" + text[text.index("-----END") :], "cut short|damaged"),
        (lambda _: "", "no PGP public key block"),
    ],
)
def test_what_is_no_key_is_told(key: tuple[str, list[str]], damage, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(openpgp.NotAKey, match=says):
        openpgp.fingerprints(damage(key[0]))
