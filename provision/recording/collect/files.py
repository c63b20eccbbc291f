"""Files as they are, bounded and masked."""

import errno
import os
import stat

from .mask import decoded
from .people import account_name
from .reading import FILE_LIMIT

MYPY = False
if MYPY:
    from typing import Any, Dict


def file(path: str) -> "Dict[str, Any]":
    """One file's text with mode and owner. Anything but a regular file is not opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
            return {"not_asked": "it is " + kind.get(stat.S_IFMT(status.st_mode), "a device")}
        with open(path, "rb") as handle:
            data = handle.read(FILE_LIMIT + 1)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ENOTDIR):
            return {"missing": True}
        if e.errno in (errno.EACCES, errno.EPERM):
            return {"denied": True}
        return {"not_asked": "it could not be read: " + (e.strerror or str(e))}
    answer: "Dict[str, Any]" = {
        "text": decoded(data[:FILE_LIMIT]),
        "mode": "%04o" % stat.S_IMODE(status.st_mode),
        "owner": account_name(status.st_uid),
    }
    if os.path.islink(path):
        answer["link"] = os.readlink(path)
    if len(data) > FILE_LIMIT:
        answer["cut"] = True
    return answer


def tail(path: str, size: int) -> "Dict[str, Any]":
    """The end of a log, from a whole line on."""
    try:
        with open(path, "rb") as log:
            length = os.fstat(log.fileno()).st_size
            log.seek(max(0, length - size))
            data = log.read(size)
    except OSError as e:
        return {"denied": True} if e.errno == errno.EACCES else {"missing": True}
    if length > size:
        data = data[data.find(b"\n") + 1 :]
    return dict({"text": decoded(data)}, **({"from_the_end": True} if length > size else {}))
