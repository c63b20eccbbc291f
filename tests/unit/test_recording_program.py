"""What is sent to a host, and how its answer is read, whatever the host prints around it."""

from __future__ import annotations

import ast
import base64
import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from collector import launched

from provision.errors import Unreached
from provision.recording import items
from provision.recording.collect.main import MARK
from provision.recording.program import HERE, NO_PYTHON, NoAnswer, Program, answer, program, sources
from provision.recording.remote import from_output

PASSWORD = "correct horse 'battery' \"staple\" $1"
FEW = {"items": [{"name": "uname", "argv": ["uname", "-a"], "seconds": 5}], "seconds": 10}
STANDARD = set(sys.stdlib_module_names)


def framed(document: object, token: str) -> str:
    text = base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()
    return f"\n{MARK} {token} {len(text)}\n{text}\n{MARK} {token} end\n"


def sudo_in(folder: Path, text: str) -> dict[str, str]:
    """An environment whose sudo is the shell text; the launcher appends to PATH, so it is found first."""
    folder.mkdir()
    (folder / "sudo").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "id").write_text("#!/bin/sh\necho 1000\n")
    (folder / "expected").write_text(PASSWORD)
    for each in folder.iterdir():
        each.chmod(0o755)
    return {"PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin"}


def said(sent: Program, env: dict[str, str]) -> dict[str, object]:
    done = launched(sent, env)
    assert PASSWORD.encode() not in done.stdout + done.stderr
    return answer(done.stdout, sent.token)["items"] | {"stderr": done.err}


# ------------------------------------------------------------------------------------------ the text


@pytest.mark.parametrize("sent", [program(), program(sudo=False), program(sudo_password=PASSWORD)])
def test_any_login_shell_takes_the_command(sent: Program) -> None:
    """In single quotes: csh takes no newline and no exclamation mark there, fish reads backslashes."""
    command = sent.argv[2]
    assert sent.argv[:2] == ("/bin/sh", "-c")
    assert not set(command) & set("'\\!\n")
    assert len(command) < 16_000
    assert subprocess.run(["sh", "-n", "-c", command], check=False).returncode == 0


def test_the_password_is_on_standard_input_and_nowhere_else() -> None:
    sent = program(sudo_password=PASSWORD)
    assert sent.stdin.startswith(PASSWORD.encode() + b"\n")
    assert sent.stdin.count(PASSWORD.encode()) == 1
    assert PASSWORD not in " ".join(sent.argv)


@pytest.mark.parametrize(
    "path", [*sorted((HERE / "collect").glob("*.py")), HERE / "elevate.py"], ids=lambda p: p.name
)
def test_what_runs_on_the_host_is_python_3_6_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= STANDARD
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.module or "").split(".")[0] in STANDARD
        assert not isinstance(node, ast.NamedExpr)


def test_modules_travel_after_those_that_they_import() -> None:
    seen: set[str] = set()
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                needed = [node.module] if node.module else [alias.name for alias in node.names]
                assert set(needed) <= seen, name
        seen.add(name)
    assert seen == {path.stem for path in (HERE / "collect").glob("[a-z]*.py")}


# ------------------------------------------------------------------------------------------ the rights


def test_sudo_that_refuses_leaves_the_program_for_the_second_try(tmp_path: Path) -> None:
    env = sudo_in(
        tmp_path / "bin", 'test "$1" = -n || cat >/dev/null; echo "sudo: a password is required" >&2; exit 1'
    )
    found = said(program(questions=FEW), env)
    assert found["uname"]["rc"] == 0
    assert "a password is required" in str(found["stderr"])


def test_sudo_that_lets_us_runs_the_program(tmp_path: Path) -> None:
    env = sudo_in(tmp_path / "bin", 'shift 2; export SUDO_USER=joe; exec "$@"')
    found = said(program(questions={**FEW, "items": [{"name": "r", "builtin": "rights", "seconds": 5}]}), env)
    assert json.loads(found["r"]["stdout"])["user"] == "joe"


ASKS = """
printf 'gpu-provision-password:' >&2
IFS= read -r line
if [ "$line" = "$(cat "$(dirname "$0")/expected")" ]; then shift 4; exec "$@"; fi
echo 'Sorry, try again.' >&2
printf 'gpu-provision-password:' >&2
if read -r line; then echo "SWALLOWED $line" >&2; fi
exit 1
"""


def test_sudo_gets_the_password_and_then_the_program(tmp_path: Path) -> None:
    found = said(program(questions=FEW, sudo_password=PASSWORD), sudo_in(tmp_path / "bin", ASKS))
    assert found["uname"]["rc"] == 0
    assert found["stderr"] == ""


def test_a_wrong_password_is_tried_once_and_swallows_nothing(tmp_path: Path) -> None:
    found = said(program(questions=FEW, sudo_password="wrong"), sudo_in(tmp_path / "bin", ASKS))
    assert found["uname"]["rc"] == 0
    assert "the password was not accepted" in str(found["stderr"])
    assert "SWALLOWED" not in str(found["stderr"])


def test_a_password_that_nobody_asks_for_does_not_become_program_text(tmp_path: Path) -> None:
    env = sudo_in(tmp_path / "bin", 'shift 4; exec "$@"')
    assert said(program(questions=FEW, sudo_password=PASSWORD), env)["uname"]["rc"] == 0


def test_root_needs_no_sudo_and_drops_the_password(tmp_path: Path) -> None:
    env = sudo_in(tmp_path / "bin", "echo called >&2; exit 1")
    (tmp_path / "bin" / "id").write_text("#!/bin/sh\necho 0\n")
    found = said(program(questions=FEW, sudo_password=PASSWORD), env)
    assert found["uname"]["rc"] == 0
    assert found["stderr"] == ""


# ------------------------------------------------------------------------------------------ no Python


def without_python(folder: Path, *, python: str | None) -> dict[str, str]:
    """An environment in which `python3` is `python`, or is not there; the real folders come after ours."""
    folder.mkdir()
    for minor in ("3", *(f"3.{n}" for n in range(6, 16))):
        (folder / f"python{minor}").write_text(f"#!/bin/sh\n{python or 'exit 127'}\n")
    (folder / "python").write_text(f"#!/bin/sh\n{python or 'exit 127'}\n")
    for each in folder.iterdir():
        each.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("python", "known"),
    [(None, None), ("echo Python 2.7.18", "Python 2.7.18\n"), ("echo Python 3.5.3", "Python 3.5.3\n")],
)
@pytest.mark.skipif(Path("/usr/libexec/platform-python").exists(), reason="this machine has a hidden Python")
def test_a_host_without_python_tells_what_sh_can_tell(
    tmp_path: Path, python: str | None, known: str | None
) -> None:
    sent = program(sudo=False)
    done = launched(sent, without_python(tmp_path / "bin", python=python))
    recording = from_output(done.stdout, done.stderr, sent, host="h")
    assert recording.answer("os-release").text == Path("/etc/os-release").read_text()
    assert recording.answer("uname").stdout.startswith("Linux ")
    assert recording.answer("python").raw == (
        {"missing": True} if known is None else {"rc": 0, "stdout": known, "stderr": ""}
    )
    assert recording.answer("dpkg.list").not_asked == NO_PYTHON
    assert set(recording.items) >= {item.name for item in items.ITEMS}


@pytest.mark.parametrize("sudo", [True, False])
def test_a_python_without_the_modules_is_as_none(tmp_path: Path, sudo: bool) -> None:
    sent = program(sudo=sudo)
    fake = 'if [ "$1" = -V ]; then echo Python 3.11.2; else cat >/dev/null; exit 97; fi'
    path = sudo_in(tmp_path / "sudo", 'shift 2; exec "$@"')["PATH"].split(":")[0]
    own = without_python(tmp_path / "bin", python=fake)
    done = launched(sent, {"PATH": f"{path}:{own['PATH']}"})
    recording = from_output(done.stdout, done.stderr, sent, host="h")
    assert recording.answer("python").stdout == "Python 3.11.2\n"
    assert recording.answer("accounts").not_asked == NO_PYTHON


# ------------------------------------------------------------------------------------------ the answer

DOCUMENT = {"as_root": True, "seconds": 0.5, "items": {"uname": {"rc": 0, "stdout": "Linux\n"}}}


@pytest.mark.parametrize(
    "output",
    [
        framed(DOCUMENT, "t1"),
        "Welcome!\nlast line without an end" + framed(DOCUMENT, "t1") + "logout\n",
        framed(DOCUMENT, "t1").replace("\n", "\r\n"),
        framed({"old": "one"}, "t0") + framed(DOCUMENT, "t1"),
        f"{MARK} \n" + framed(DOCUMENT, "t1"),
    ],
)
def test_noise_around_the_answer_is_passed_over(output: str) -> None:
    assert answer(output, "t1") == DOCUMENT
    assert answer(output.encode(), "t1") == DOCUMENT


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "did not run"),
        ("This account is currently not available.\n", "did not run"),
        (framed(DOCUMENT, "other"), "did not run"),
        (framed(DOCUMENT, "t1")[:60], "broke off"),
        (framed(DOCUMENT, "t1").replace("end", ""), "broke off"),
        (framed(DOCUMENT, "t1")[:40] + framed(DOCUMENT, "t1")[44:], "characters instead of"),
        (framed([1], "t1"), "another form"),
    ],
)
def test_half_an_answer_is_none(output: str, says: str) -> None:
    with pytest.raises(NoAnswer, match=says):
        answer(output, "t1")


def test_no_answer_names_the_host_and_its_last_words() -> None:
    with pytest.raises(Unreached) as caught:
        from_output(b"", b"Traceback\nMemoryError\n", program(), host="gpu01")
    assert caught.value.host == "gpu01"
    assert "MemoryError" in caught.value.do


@pytest.mark.skipif(shutil.which("busybox") is None, reason="no busybox here")
def test_a_small_shell_takes_the_command() -> None:
    sent = program(sudo=False, questions=FEW)
    done = subprocess.run(
        ["busybox", "sh", "-c", sent.argv[2]], input=sent.stdin, capture_output=True, check=False
    )
    assert answer(done.stdout, sent.token)["items"]["uname"]["rc"] == 0
