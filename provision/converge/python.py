"""Which Python the installed ansible-core needs on a host."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path


@cache
def minimum_python() -> tuple[int, int]:
    """The oldest Python that modules of the installed ansible-core run under, as (major, minor).

    Read from ansible.module_utils.basic, which refuses older ones by this same constant on the host;
    read and not imported, because the import costs more than the rest of a plan. Raises LookupError
    where ansible-core no longer has it.
    """
    spec = importlib.util.find_spec("ansible")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError("ansible-core is not installed beside this program")
    basic = Path(spec.submodule_search_locations[0], "module_utils", "basic.py")
    found = re.search(r"^_PY_MIN = \((\d+), (\d+)\)", basic.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise LookupError(f"no minimum Python version in {basic}")
    return int(found[1]), int(found[2])
