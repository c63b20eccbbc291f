"""Which NCCL the host has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..facts.known import Unknown
from ..facts.versions import upstream

if TYPE_CHECKING:
    from ..facts import Facts


def nccl_release(facts: Facts) -> str | None:
    """The release of its package (`2.22.3`); None where it has none, or that is not known.

    Programs of a virtual environment or a container bring an NCCL of their own.
    """
    packages = facts.packages
    if isinstance(packages, Unknown):
        return None
    package = packages.get("libnccl2") or packages.get("libnccl")
    found = re.match(r"\d+\.\d+\.\d+", upstream(package.version)) if package else None
    return found[0] if found else None
