"""The packages that the data files name, expanded: one entry a name, version and repository."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DATA = Path(__file__).parent / "data"
# Keys of the data that become control fields as they are.
FIELDS = {
    "depends": "Depends", "recommends": "Recommends", "provides": "Provides", "conflicts": "Conflicts",
    "replaces": "Replaces", "breaks": "Breaks", "section": "Section",
}  # fmt: skip


@dataclass(frozen=True)
class Package:
    """One package: its control fields, what it holds, and the repositories that have it.

    `values` are what `{name}` in the data stands for here.
    """

    name: str
    version: str
    arch: str
    fields: Mapping[str, str]
    payload: tuple[Mapping[str, Any], ...]
    repositories: tuple[str, ...]
    values: Mapping[str, str]
    postinst: str = ""
    prerm: str = ""

    @property
    def upstream(self) -> str:
        return upstream(self.version)

    @property
    def filename(self) -> str:
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.arch}.deb"


def upstream(version: str) -> str:
    return version.rpartition(":")[2].rpartition("-")[0]


def packages(folder: Path = DATA) -> list[Package]:
    """Every package of the data files. Raises KeyError where a text names a value that its set has not."""
    found: dict[tuple[str, str, tuple[str, ...]], Package] = {}
    for path in sorted(folder.glob("*.yml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for row in document["sets"]:
            where = tuple(row.get("repositories", document["repositories"]))
            for values in _releases(row):
                if "adds_to" in row:
                    key = (row["adds_to"], values["version"], where)
                    found[key] = replace(found[key], payload=(*found[key].payload, *row["payload"]))
                for raw in row.get("packages", ()):
                    package = _package(raw, values, where)
                    found.setdefault((package.name, package.version, where), package)
    return list(found.values())


def _releases(row: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The values of each release of a set: versions, pins, rows, or each row of a list with each other."""
    if "versions" in row:
        yield from ({"version": version} for version in row["versions"])
    elif "pins" in row:
        yield from ({"pin": pin} for pin in row["pins"])
    elif "releases" in row:
        yield from (dict(release) for release in row["releases"])
    else:
        for parts in product(*row["product"].values()):
            yield {key: value for part in parts for key, value in part.items()}


def _package(raw: Mapping[str, Any], given: Mapping[str, str], where: tuple[str, ...]) -> Package:
    version = str(raw.get("version", "{version}")).format_map(given)
    own = {"upstream": upstream(version), "branch": upstream(version).partition(".")[0]}
    values = {**own, **given}
    fields = {field: str(raw[key]).format_map(values) for key, field in FIELDS.items() if key in raw}
    return Package(
        name=str(raw["name"]).format_map(values),
        version=version,
        arch=raw.get("arch", "amd64"),
        fields=fields,
        payload=tuple(raw.get("payload", ())),
        repositories=where,
        values=values,
        postinst=str(raw.get("postinst", "")).format_map(values),
        prerm=str(raw.get("prerm", "")).format_map(values),
    )
