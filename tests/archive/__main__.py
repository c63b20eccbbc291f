"""`python -m archive FOLDER`, from `tests`: the archive below FOLDER/www, for hosts that get it as files."""

from __future__ import annotations

import sys
from pathlib import Path

from .build import Builder

if __name__ == "__main__":
    builder = Builder(Path(sys.argv[1]) / "www", Path(sys.argv[1]))
    builder.everything()
    builder.close()
