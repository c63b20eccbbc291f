"""Runs on the host where sudo wants a password: hands sudo the password, and only then the program.

Standard input holds the password's line and after it the program. sudo with `-S` would read lines of
the program as further attempts after a wrong password, and would leave the password to the program
where it asks for none. So this program stands between: it writes the password when sudo prompts, once,
and the program when the command that sudo starts says that it is there. Python 3.6 or newer, standard
library only. The password is in no argument, no variable of the environment and no file.
"""

import os
import re
import selectors
import subprocess
import sys

READY = b"gpu-provision-elevated\n"
PROMPT = "gpu-provision-password:"
PYTHON = [sys.executable, "-I", "-S", "-B", "-"]


def main() -> int:
    password, _, rest = sys.stdin.buffer.read().partition(b"\n")
    shell = ["/bin/sh", "-c", 'echo gpu-provision-elevated; exec "$0" "$@"', *PYTHON]
    try:
        sudo = subprocess.Popen(
            ["sudo", "-S", "-p", PROMPT, "--", *shell],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError:
        os.write(2, b"sudo: not found\n")
        return alone(rest)
    assert sudo.stdin
    assert sudo.stdout
    assert sudo.stderr
    poll = selectors.DefaultSelector()
    poll.register(sudo.stdout, selectors.EVENT_READ, "out")
    poll.register(sudo.stderr, selectors.EVENT_READ, "err")
    out, said = b"", b""
    given = ready = False
    while poll.get_map():
        for key, _ in poll.select():
            data = os.read(key.fd, 65536)
            if not data:
                poll.unregister(key.fileobj)
                continue
            if ready:
                os.write(1 if key.data == "out" else 2, data)
                continue
            if key.data == "out":
                out += data
                if READY in out:
                    ready = True
                    os.write(1, out.split(READY, 1)[1])
                    sudo.stdin.write(rest)
                    sudo.stdin.close()
                continue
            said += data
            # PAM may have put a prompt of its own in the place of ours.
            if PROMPT.encode() in said or re.search(rb"(?i)password[^\n]*:\s*$", said):
                said = said.replace(PROMPT.encode(), b"")
                if given:
                    sudo.stdin.close()  # it was wrong: one attempt is enough
                    poll.unregister(sudo.stderr)
                    poll.unregister(sudo.stdout)
                    said += b"\nsudo: the password was not accepted\n"
                    break
                given = True
                sudo.stdin.write(password + b"\n")
                sudo.stdin.flush()
    if ready:
        return sudo.wait()
    os.write(2, said)
    sudo.wait()
    return alone(rest)


def alone(rest: bytes) -> int:
    """Run the program with the rights that there are."""
    unprivileged = subprocess.Popen(PYTHON, stdin=subprocess.PIPE)
    unprivileged.communicate(rest)
    return unprivileged.returncode


if __name__ == "__main__":
    sys.exit(main())
