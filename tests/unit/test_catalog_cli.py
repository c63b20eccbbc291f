"""`resolve` and `catalog` at the command line: output for machines and people, exit codes, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import provision.report
from provision.catalog.stack import SCHEMA, Stack

SCHEMA_FILE = Path(provision.report.__file__).with_name("schemas") / "stack-1.json"
ON = ("--on", "2026-11-30")


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "provision", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )


def document(*arguments: str) -> dict[str, Any]:
    done = run("resolve", "--json", *ON, *arguments)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_json_is_the_contracts_document() -> None:
    found = document("--gpu", "Tesla V100", "--os", "ubuntu2404")
    assert found["schema"] == SCHEMA
    assert found["satisfiable"] is True
    assert found["driver"]["branch"] == 580
    assert found["driver"]["version"] is None
    assert found["cuda"] | {"pin": [], "source": ""} == {
        "version": "12.9",
        "packages": ["cuda-toolkit-12-9"],
        "pin": [],
        "source": "",
    }
    assert found["fabric_manager"] is None
    assert {"about", "says", "source"} == set(found["reasons"][0])
    assert Stack.from_dict(found).as_dict() == found


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpu", "A100", "--os", "ubuntu24.04", "--cuda", "13.0", "--cuda", "12.8"],
        ["--gpu", "T4", "--os", "rhel10"],
        ["--gpu", "V100", "--os", "debian13"],
        ["--gpu", "V100", "--os", "debian12", "--source", "debian"],
        ["--gpu", "V100", "--gpu", "B200", "--os", "debian12"],
        ["--os", "rocky8", "--source", "rhel", "--driver", "580.95.05"],
    ],
)
def test_the_published_schema_describes_it(arguments: list[str]) -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.validate(document(*arguments), schema)


def test_a_conflict_ends_with_status_1() -> None:
    done = run("resolve", *ON, "--gpu", "Tesla V100", "--cuda", "13.0", "--os", "ubuntu24.04", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["satisfiable"] is False
    assert set(found["conflicts"][0]["demands"]) == {"Tesla V100", "--cuda 13.0"}
    assert found["conflicts"][0]["relax"]


def test_people_get_a_table_with_reasons_and_their_sources() -> None:
    done = run("resolve", *ON, "--gpu", "A100", "--gpu", "T4", "--os", "ubuntu24.04", "--driver", "595")
    assert done.returncode == 0
    for words in (
        "R595",
        "nvidia-driver-pinning-595",
        "warning (ends-soon)",
        "driver.modules:",
        "[1] ",
        "https://",
    ):
        assert words in done.stdout
    done = run("resolve", *ON, "--gpu", "V100", "--gpu", "B200", "--os", "ubuntu24.04")
    assert done.returncode == 1
    assert "V100 + B200" in done.stdout
    assert "to relax: move the" in done.stdout


def test_the_own_machine_is_the_default_place() -> None:
    done = run("resolve", "--gpu", "T4", *ON)
    assert done.returncode in {0, 2}
    assert done.returncode == 0 or "no such operating system" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gpu", "RTX 3091"], "Nearest: "),
        (["--gpu", "10de:ffff"], "newer than the catalog"),
        (["--gpu", "T4", "--cuda", "12.7"], "12.6, 12.8"),
        (["--gpu", "T4", "--cuda", "99"], "never released"),
        (["--gpu", "T4", "--cuda", "new"], "no CUDA version"),
        (["--gpu", "T4", "--driver", "585"], "575, 580, 590, 595"),
        (["--gpu", "T4", "--driver", "580.10.01"], "begins with 580.65.06"),
        (["--gpu", "T4", "--driver", "latest"], "neither a branch"),
        (["--gpu", "T4", "--cudnn", "9.99"], "no such release"),
        (["--gpu", "T4", "--nccl", "3"], "no such release"),
        (["--gpu", "T4", "--source", "apt"], "apt"),
        (["--gpu", "T4", "--modules", "both"], "both"),
        (["--gpu", "T4", "--on", "yesterday"], "yesterday"),
        (["--gpu", "T4", "--arch", "sparc"], "sparc"),
        (["--gpu", "T4", "--colour"], "--colour"),
    ],
)
def test_bad_input_ends_with_status_2_and_a_way_on(arguments: list[str], says: str) -> None:
    done = run("resolve", "--os", "ubuntu24.04", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("system", "says"), [("ubuntu24.10", "ubuntu24.04"), ("windows11", "Known: ")])
def test_an_unsupported_system_names_the_nearest(system: str, says: str) -> None:
    done = run("resolve", "--gpu", "T4", "--os", system)
    assert done.returncode == 2
    assert says in done.stderr


def test_the_catalogs_tables() -> None:
    done = run("catalog", "gpus", "a100 sxm4")
    assert done.returncode == 0
    assert "10de:20b2" in done.stdout
    assert "V100" not in done.stdout
    drivers = json.loads(run("catalog", "drivers", "--json").stdout)
    assert {"branch": "R620", "type": "LTS"}.items() <= drivers[0].items()
    for subject, words in (("cuda", "13.0.2"), ("cudnn", "9.12"), ("nccl", "2.30.7-1+cuda12.9")):
        assert words in run("catalog", subject).stdout


def test_no_row_ends_with_status_1() -> None:
    done = run("catalog", "gpus", "voodoo")
    assert (done.returncode, done.stdout) == (1, "")
    assert "voodoo" in done.stderr


def test_a_sites_catalog_counts(tmp_path: Any) -> None:
    import os

    folder = tmp_path / "gpu-provision" / "catalog.d"
    folder.mkdir(parents=True)
    (folder / "gpus.tsv").write_text(
        "ffff\tNVIDIA Site Special\t\tGB100\t\t\t\t\tD\togkm\n", encoding="utf-8"
    )
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    done = run("resolve", "--gpu", "10de:ffff", "--os", "ubuntu24.04", "--json", *ON, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["driver"]["modules"] == "open"
