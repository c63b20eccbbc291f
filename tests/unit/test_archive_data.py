"""The data of the tests' package archive is whole."""

from __future__ import annotations

import yaml
from archive.packages import DATA, packages

ELSEWHERE = {"dkms", "adduser", "zlib1g"}
"""What the distribution has."""


def test_each_dependency_of_the_archive_can_be_met_there_or_by_the_distribution() -> None:
    """A package that the data forgot would make a host's set impossible, and a test fail for no reason."""
    every = packages()
    for repository in {name for package in every for name in package.repositories}:
        here = [package for package in every if repository in package.repositories]
        known = {package.name for package in here} | ELSEWHERE
        for package in here:
            known |= {
                each.split()[0] for each in package.fields.get("Provides", "").split(",") if each.strip()
            }
        for package in here:
            for group in package.fields.get("Depends", "").split(", "):
                names = {each.split()[0] for each in group.split("|") if each.strip()}
                assert not names or names & known, f"{package.filename}: {group}"


def test_every_set_names_its_source_and_what_was_not_read() -> None:
    for path in DATA.glob("*.yml"):
        document = yaml.safe_load(path.read_text())
        assert all(source.startswith("https://") for source in document["sources"]), path.name
        assert document["repositories"], path.name
        assert all(row.get("inferred", ["something"]) for row in document["sets"]), path.name


def test_what_the_data_promises_is_there() -> None:
    here = {(package.name, package.upstream) for package in packages() if "debian12" in package.repositories}
    for branch in ("535.288.01", "570.211.01", "580.126.20", "595.58.03", "620.70.06"):
        assert ("nvidia-open", branch) in here
    toolkits = {name for name, _ in here if name.startswith("cuda-toolkit-1") and "config" not in name}
    assert toolkits == {"cuda-toolkit-12-4", "cuda-toolkit-12-8", "cuda-toolkit-12-9", "cuda-toolkit-13-0"}
    assert {"libcudnn8", "libcudnn9-cuda-13", "libnccl2", "nvidia-fabricmanager", "nvlsm", "nvidia-imex"} <= {
        n for n, _ in here
    }
