"""The process that runs the suite for one host.

`python -m provision.verify.child DESCRIPTOR FILE...` with the subject as JSON on standard input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(descriptor: int, files: list[str]) -> int:
    """Run the check files over the subject. The exit code is pytest's."""
    import pytest

    from . import plugin
    from .subject import Subject

    subject = Subject.from_dict(json.load(sys.stdin))
    checks = Path(__file__).parent / "checks"
    # A pytest.ini, conftest or plugin of the user's must not take part.
    isolated = ["-c", "/dev/null", f"--rootdir={checks}", f"--confcutdir={checks}", "-p", "no:cacheprovider"]
    plain = ["--import-mode=importlib", "--assert=plain", "--tb=short", "-q"]
    return int(
        pytest.main(
            [*isolated, *plain, *(str(checks / file) for file in files)],
            plugins=[plugin, plugin.Lines(subject, descriptor)],
        )
    )


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
