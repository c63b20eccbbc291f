"""The password of a login, handed to OpenSSH by a program of ours (ssh(1), SSH_ASKPASS).

The password waits in a pipe that only we can open. It is in no argument, no environment and no file; the pipe
has a name and no content that a disk would keep. Needs OpenSSH 8.4 or newer on this machine.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import child
from .options import destination, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .target import Target

# Only what asks for this login's password is answered: not a host on the way (ProxyJump), which inherits the
# program, not a key's passphrase, not a token, and nobody who wants an old password changed for a new one.
# `read` and `printf` belong to the shell, so that no process is given the password.
HELPER = r"""#!/bin/sh
case $1 in
"$GPU_PROVISION_LOGIN's password: ") ;;
"($GPU_PROVISION_LOGIN) "*)
    case ${1#*) } in
    *[Nn]ew*|*[Cc]urrent*|*[Rr]etype*|*[Oo]ld*) exit 1 ;;
    *[Pp]assword*) ;;
    *) exit 1 ;;
    esac ;;
*) exit 1 ;;
esac
IFS= read -r secret <"$GPU_PROVISION_PIPE" && printf '%s\n' "$secret"
"""
# A server may ask once for each of two methods.
ANSWERS = 2
OPTIONS = (
    "BatchMode=no",
    "NumberOfPasswordPrompts=1",
    "PreferredAuthentications=gssapi-with-mic,hostbased,publickey,password,keyboard-interactive",
    "PasswordAuthentication=yes",
    "KbdInteractiveAuthentication=yes",
)


@contextmanager
def answering(target: Target, password: str) -> Iterator[dict[str, str]]:
    """The environment in which one ssh to `target` is answered with the password.

    OPTIONS have to stand before all other options of that ssh.
    """
    with tempfile.TemporaryDirectory(prefix="gp-ask-") as folder:
        helper, pipe = Path(folder) / "ask", Path(folder) / "pipe"
        helper.write_text(HELPER)
        helper.chmod(0o700)
        os.mkfifo(pipe, 0o600)
        # Opened for both ends, so that neither side waits for the other; what is not read goes with it.
        end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        try:
            os.write(end, f"{password}\n".encode() * ANSWERS)
            yield {
                **os.environ,
                "SSH_ASKPASS": str(helper),
                "SSH_ASKPASS_REQUIRE": "force",
                "GPU_PROVISION_LOGIN": _login(target),
                "GPU_PROVISION_PIPE": str(pipe),
            }
        finally:
            os.close(end)


def _login(target: Target) -> str:
    """USER@HOST as ssh's prompts have it."""
    said = child.run(["ssh", "-G", *options(target), *destination(target)], timeout=20).out
    way = dict(re.findall(r"(?m)^(\S+) (.*)$", said))
    alias = way.get("hostkeyalias", "none")
    host = way.get("hostname", target.address) if alias in ("none", "") else alias
    return f"{way.get('user', target.user or '')[:30]}@{host[:128]}"
