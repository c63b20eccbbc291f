"""The JSON documents: `gpu-provision/audit/1` and `gpu-provision/run/1`. Their schemas lie in schemas/."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from . import exits

if TYPE_CHECKING:
    from .model import Audit, Run

AUDIT = "gpu-provision/audit/1"
RUN = "gpu-provision/run/1"


def audit(report: Audit) -> dict[str, Any]:
    return {
        "schema": AUDIT,
        "taken": report.taken,
        "profile": report.profile,
        "hosts": [h.as_dict() for h in report.hosts],
        "drift": [dict(d) for d in report.drift],
    }


def run(report: Run) -> dict[str, Any]:
    return {
        "schema": RUN,
        "command": report.command,
        "taken": report.taken,
        "seconds": round(report.seconds, 1),
        "profile": report.profile,
        "interrupted": report.interrupted,
        "exit_code": exits.of_run(report),
        "directory": report.directory,
        "hosts": [h.as_dict() for h in report.hosts],
    }


def dump(document: dict[str, Any]) -> str:
    """One JSON document with a final newline."""
    # Half a surrogate pair, which a recording may hold, has no form in UTF-8.
    return re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def schema(name: str) -> dict[str, Any]:
    """The published JSON Schema of a document, by the name in its `schema` field."""
    from importlib import resources

    file = name.removeprefix("gpu-provision/").replace("/", "-") + ".json"
    loaded: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("schemas", file).read_text("utf-8")
    )
    return loaded
