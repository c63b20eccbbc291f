"""Reports as text, through rich: colours and width on a terminal, plain long lines elsewhere."""

from .audit import audit, judgement
from .lines import Mend, console
from .run import checks, run

__all__ = ["Mend", "audit", "checks", "console", "judgement", "run"]
