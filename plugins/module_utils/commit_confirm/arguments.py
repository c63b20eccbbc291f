"""The arguments that the action plugin takes and the host's side is given; the module documents them."""

from __future__ import annotations

from typing import Any

from .loaded import CHAINS

_STRINGS: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
_PATHS: dict[str, Any] = {"type": "list", "elements": "path", "default": []}
_TABLE: dict[str, Any] = {"type": "str", "choices": list(CHAINS)}

FILES: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "path": {"type": "path", "required": True},
        "text": {"type": "str"},
        "first_line": {"type": "str"},
        "mode": {"type": "str"},
        "owner": {"type": "str"},
    },
    "mutually_exclusive": [("text", "first_line")],
}
LOADED: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "nft": {"type": "str"},
        "iptables": _TABLE,
        "ip6tables": _TABLE,
        "save": {"type": "str"},
        "restore": {"type": "str"},
        "absent": {"type": "str"},
    },
    "mutually_exclusive": [("nft", "iptables", "ip6tables", "save")],
    "required_one_of": [("nft", "iptables", "ip6tables", "save")],
    "required_together": [("save", "restore")],
    "required_by": {"absent": "save"},
}
VALIDATE: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {"command": {"type": "str", "required": True}, "lines": _STRINGS},
}
# What is changed, kept and made effective; the same on both sides.
CHANGE: dict[str, Any] = {
    "name": {"type": "str", "default": ""},
    "files": FILES,
    "paths": _PATHS,
    "units": _STRINGS,
    "loaded": LOADED,
    "validate": VALIDATE,
    "load": _STRINGS,
    "reload": _STRINGS,
}
PROVE: dict[str, Any] = {
    "type": "dict",
    "default": {},
    "apply_defaults": True,
    "options": {
        "password_refused": {"type": "bool", "default": False},
        "administrator": {"type": "bool", "default": False},
    },
}
OPERATIONS = ["change", "arm", "confirm", "status", "revert"]
# The action plugin's own: the step that the host is asked for is its affair.
ACTION: dict[str, Any] = {
    "operation": {"type": "str", "choices": OPERATIONS, "default": "change"},
    "id": {"type": "str", "default": ""},
    **CHANGE,
    "prove": PROVE,
    "seconds": {"type": "int"},
}
# What the action plugin orders of the host, step by step.
STEPS = ["plan", "apply", "arm", "confirm", "revert", "status"]
HOST: dict[str, Any] = {
    "step": {"type": "str", "choices": STEPS, "required": True},
    "id": {"type": "str", "default": ""},
    "holder": {"type": "str", "default": ""},
    "seconds": {"type": "int", "default": 180},
    **CHANGE,
}
