"""The GPU double: a stand-in for GPUs on a lab host, which answers as a GPU host answers and says what it is
to whoever looks.

`host/` is what runs on the host, by the host's own Python and its standard library alone; the rest runs
beside the lab.
"""

from __future__ import annotations

from . import faults
from .placing import install, nspawn_binds
from .spec import DEFAULT_GPUS, GpuSpec, parse_gpus

__all__ = ["DEFAULT_GPUS", "GpuSpec", "faults", "install", "nspawn_binds", "parse_gpus"]
