"""CUDA toolkits that are on the host, whoever brought them."""

import glob
import json
import os
import re

from .reading import as_json, names, peek, read

MYPY = False
if MYPY:
    from typing import Any, Dict


def cuda_installed() -> "Dict[str, Any]":
    """Toolkits below /usr/local, by their own version.json, and which one is the default."""
    found = []
    default = os.path.realpath("/usr/local/cuda") if os.path.exists("/usr/local/cuda") else None
    for path in sorted(glob.glob("/usr/local/cuda-*")):
        if not os.path.isdir(path) or os.path.islink(path):
            continue
        version = None
        try:
            version = json.loads(read(path + "/version.json"))["cuda"]["version"]
        except (OSError, ValueError, KeyError, TypeError):
            old = re.search(r"CUDA Version ([\d.]+)", peek(path + "/version.txt") or "")
            version = old.group(1) if old else None
        found.append(
            {
                "path": path,
                "version": version,
                "default": os.path.realpath(path) == default,
                "nvcc": os.path.exists(path + "/bin/nvcc"),
            }
        )
    return as_json(found)


# Where conda and its kin are commonly put; their environments hold toolkits of their own.
_CONDA = (
    "/opt/*conda*",
    "/opt/*forge*",
    "/root/*conda*",
    "/root/*forge*",
    "/home/*/*conda*",
    "/home/*/*forge*",
)


def cuda_conda() -> "Dict[str, Any]":
    """Environments of conda that have a CUDA compiler or toolkit, with its version by conda's own record."""
    roots = [path for pattern in _CONDA for path in glob.glob(pattern)]
    environments = [path for above in roots for path in glob.glob(above + "/envs/*")]
    found = {}
    for root in sorted(set(roots + environments))[:200]:
        for name in names(root + "/conda-meta"):
            made = re.match(r"(?:cuda-nvcc|cuda-toolkit|cudatoolkit)-(\d+\.[\d.]+)-.*\.json$", name)
            if made:
                found[os.path.realpath(root)] = made.group(1)
    return as_json([{"path": path, "version": version} for path, version in sorted(found.items())])
