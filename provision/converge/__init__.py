"""Doing it with Ansible: each host's planned roles, read along event by event."""

from .events import Event, Kind, TaskStatus
from .hosts import HostVars, connection, with_become_password
from .python import minimum_python
from .result import ConvergeResult, HostResult, Outcome, State
from .run import converge

__all__ = [
    "ConvergeResult",
    "Event",
    "HostResult",
    "HostVars",
    "Kind",
    "Outcome",
    "State",
    "TaskStatus",
    "connection",
    "converge",
    "minimum_python",
    "with_become_password",
]
