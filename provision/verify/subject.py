"""What the checks are told of one host."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..access.door import Door
from ..catalog.stack import Stack
from ..facts.known import Unknown
from ..profile.model import Profile
from ..recording.model import Recording
from ..transport import ssh
from ..transport.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Subject:
    """One host to prove: how to get there, what it is meant to be, and its last recording.

    `control_path` is that of the session which the run keeps open; without it each command connects anew.
    `login_password` is given where no key gets in, for sessions of work; a proof never uses it.
    """

    target: Target
    profile: Profile
    stack: Stack | Unknown
    recording: Recording
    control_path: Path | None = None
    sudo_password: str | None = field(default=None, repr=False)
    login_password: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def door(self) -> Door:
        """The way in for fresh connections."""
        return Door(self.target.address, tuple(ssh.options(self.target)))

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": asdict(self.target),
            "profile": {
                "name": self.profile.name,
                "variables": dict(self.profile.variables),
                "chosen": dict(self.profile.chosen),
                "required_controls": sorted(self.profile.required_controls),
            },
            "stack": {"unknown": self.stack.reason}
            if isinstance(self.stack, Unknown)
            else self.stack.as_dict(),
            "recording": self.recording.as_dict(),
            "control_path": str(self.control_path) if self.control_path else None,
            "sudo_password": self.sudo_password,
            "login_password": self.login_password,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Subject:
        target, profile, stack = document["target"], document["profile"], document["stack"]
        return cls(
            target=Target(**{**target, "options": tuple(target["options"])}),
            profile=Profile(**{**profile, "required_controls": frozenset(profile["required_controls"])}),
            stack=Unknown(stack["unknown"]) if "unknown" in stack else Stack.from_dict(stack),
            recording=Recording.from_dict(document["recording"]),
            control_path=Path(document["control_path"]) if document["control_path"] else None,
            sudo_password=document["sudo_password"],
            login_password=document["login_password"],
        )
