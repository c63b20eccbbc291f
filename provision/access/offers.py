"""Which ways of logging in a server offers, asked of the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 20.0


def offered(open_socket: Callable[[], Any], user: str) -> tuple[str, ...]:
    """The ways that the server names when none is tried (RFC 4252, section 5.2); empty where it does not.

    OpenSSH tells them only as it gives up, and not where the server hung up over too many keys. No key and no
    password is sent. `open_socket` gives a connected socket, or what stands for one.
    """
    import paramiko

    transport = None
    try:
        transport = paramiko.Transport(open_socket())
        transport.banner_timeout = transport.auth_timeout = SECONDS
        transport.start_client(timeout=SECONDS)
        transport.auth_none(user)
    except paramiko.BadAuthenticationType as e:
        return tuple(e.allowed_types)
    except (paramiko.SSHException, OSError, EOFError):
        return ()
    finally:
        if transport is not None:
            transport.close()
    return ("none",)
