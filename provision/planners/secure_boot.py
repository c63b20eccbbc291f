"""Whether Secure Boot lets a module load that is built on the host, and what to do where it does not.

With Secure Boot on, the kernel takes modules only from keys that the firmware or the machine owner's list
has. DKMS signs with a key of the host's own: on Ubuntu with the one that update-secureboot-policy makes,
elsewhere with /var/lib/dkms/mok.pub (dkms(8), "MODULE SIGNING").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..facts.kernels import LoadedDriver
from ..facts.known import Unknown
from .driver_origin import family_of

if TYPE_CHECKING:
    from ..facts import Facts

_SIGNED = "linux-modules-nvidia-"


@dataclass(frozen=True)
class _Key:
    """Where DKMS has its public key, whether it is enrolled, and the command that makes one."""

    path: str
    enrolled: bool | Unknown
    make: str


def refusal(facts: Facts, *, signed: bool = False) -> str | None:
    """Why a module built here would not load; None where it would, or where that is not known.

    `signed` is True where the modules come built and signed by the distribution.
    """
    state = facts.secure_boot
    if isinstance(state, Unknown) or not state.enabled or signed:
        return None
    key = _key(facts)
    if key.enrolled is True or _proven(facts):
        return None
    # mokutil cannot read a key that is not there. DKMS makes it with its first build, which is too late.
    first = f"make it (`{key.make}`) and " if isinstance(key.enrolled, Unknown) else ""
    return (
        f"Secure Boot is on, and the kernel would refuse the module that DKMS builds here. Choose: {first}"
        f"enrol its key (`mokutil --import {key.path}`, confirm at the console in the next boot); switch "
        "Secure Boot off in the firmware; or use a distribution whose archive has signed modules (Ubuntu)"
    )


def _proven(facts: Facts) -> bool:
    """A module that was built here and is loaded has proven its key; one that came signed has not."""
    packages = facts.packages
    came_signed = not isinstance(packages, Unknown) and any(n.startswith(_SIGNED) for n in packages.installed)
    return isinstance(facts.loaded_driver, LoadedDriver) and not came_signed


def _key(facts: Facts) -> _Key:
    if family_of(facts) == "ubuntu":
        make = "update-secureboot-policy --new-key"
        return _Key("/var/lib/shim-signed/mok/MOK.der", facts.shim_key_enrolled, make)
    make = (
        "mkdir -p /var/lib/dkms && openssl req -new -x509 -nodes -days 36500 -newkey rsa:2048 "
        "-subj '/CN=DKMS module signing key' -keyout /var/lib/dkms/mok.key -outform DER "
        "-out /var/lib/dkms/mok.pub"
    )
    return _Key("/var/lib/dkms/mok.pub", facts.dkms_key_enrolled, make)
