"""The cache before the compilers answers like the compiler, the second time without it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from provision.transport.ssh import fresh_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.lab import LabHost

COMPILES = "int lab_question(void) { return 4; }"
FAILS = "#error there is no such function"


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def host(request: pytest.FixtureRequest, lab_up: Callable[..., LabHost]) -> LabHost:
    host = lab_up(release=request.param)
    on(host, "mkdir /root/q && cd /root/q && echo : > conftest.sh")
    return host


def on(host: LabHost, command: str) -> str:
    done = subprocess.run([*fresh_args(host.target()), command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ask(host: LabHost, number: int, text: str, option: str = "-O2") -> str:
    """What NVIDIA's conftest.sh does: a file of a new name, compiled; the code and whether an object came."""
    return on(
        host,
        f"cd /root/q && printf '%s\\n' '{text}' > conftest{number}.c && k=$(echo /lib/modules/*/build) &&"
        f" $(basename /usr/lib/ccache/gcc-*) {option} -include $k/include/generated/autoconf.h"
        f" -c conftest{number}.c 2> err; echo code $?; ls conftest{number}.o 2> /dev/null;"
        f" grep -c error: err; rm -f conftest{number}.*",
    )


def answers(host: LabHost) -> int:
    return len(list((host.place.compiler_cache / "conftest").glob("*")))


def test_compilers_are_found_before_the_real_ones(host: LabHost) -> None:
    for path in on(host, "for c in /usr/lib/ccache/*; do command -v ${c##*/}; done").splitlines():
        assert path.startswith("/usr/local/bin/")
    assert on(host, "apt-config dump DPkg::Path").split('"')[1].startswith("/usr/local/")


def test_a_question_is_answered_from_the_cache_by_whatever_name(host: LabHost) -> None:
    stamp = on(host, "date +%s%N")  # a question that no other run has asked
    before = answers(host)
    first = ask(host, 100, f"{COMPILES} /* {stamp} */")
    assert first.split() == ["code", "0", "conftest100.o", "0"]
    assert answers(host) == before + 1
    assert ask(host, 200, f"{COMPILES} /* {stamp} */").split() == ["code", "0", "conftest200.o", "0"]
    assert answers(host) == before + 1


def test_no_is_an_answer_too(host: LabHost) -> None:
    stamp = on(host, "date +%s%N")
    before = answers(host)
    for number in (300, 400):
        assert ask(host, number, f"{FAILS} {stamp}").split() == ["code", "1", "1"]
    assert answers(host) == before + 1


def test_another_question_or_option_is_compiled(host: LabHost) -> None:
    stamp = on(host, "date +%s%N")
    before = answers(host)
    ask(host, 500, f"{COMPILES} /* {stamp} */")
    ask(host, 600, f"{COMPILES} /* {stamp} again */")
    ask(host, 700, f"{COMPILES} /* {stamp} */", option="-O1")
    assert answers(host) == before + 3


def test_a_full_disk_is_no_answer(host: LabHost) -> None:
    """An object that could not be written says nothing about the kernel's headers."""
    before = answers(host)
    on(host, "rm -rf /root/q/full; mkdir /root/q/full && mount -t tmpfs -o size=16k full /root/q/full")
    done = on(
        host,
        "cd /root/q/full && echo : > conftest.sh && printf 'char lab_big[70000] = {1};\\n' > conftest1.c &&"
        " k=$(echo /lib/modules/*/build) &&"
        " $(basename /usr/lib/ccache/gcc-*) -include $k/include/generated/autoconf.h -c conftest1.c; echo $?;"
        " cd / && umount /root/q/full",
    )
    assert done == "1"
    assert answers(host) == before
