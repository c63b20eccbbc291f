"""Running one command from within a builtin, in an environment that is the same on every host."""

import os
import re
import subprocess
import threading
import time

from .mask import decoded

MYPY = False
if MYPY:
    from typing import Any, Callable, Dict, List, Optional


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
TOKEN_VARIABLE = "GPU_PROVISION_ITEM"
NICE_ENVIRONMENT = {
    "PATH": PATH,
    "LC_ALL": "C",
    "LANG": "C",
    "LANGUAGE": "C",
    "HOME": "/nonexistent",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "",
    "SYSTEMD_COLORS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}


def program(name: str) -> "Optional[str]":
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    for folder in PATH.split(":"):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def denial(text: str) -> bool:
    return (
        re.search(
            r"(?i)permission denied|operation not permitted|must be (?:super ?user|root)|only root|EACCES",
            text,
        )
        is not None
    )


def ask(argv: "List[str]", seconds: float = 5.0, limit: int = 256 * 1024) -> "Dict[str, Any]":
    """Run one command from within a builtin; the builtin's own group and time limit hold for it too."""
    path = program(argv[0])
    if path is None:
        return {"argv": argv, "missing": True}
    began = time.time()
    child = subprocess.Popen(
        [path, *argv[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(NICE_ENVIRONMENT, **{TOKEN_VARIABLE: os.environ.get(TOKEN_VARIABLE, "")}), cwd="/",
    )  # fmt: skip
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        return {"argv": argv, "rc": None, "timed_out": True, "seconds": round(time.time() - began, 3)}
    answer = {
        "argv": argv,
        "rc": child.returncode,
        "stdout": decoded(out[:limit]),
        "stderr": decoded(err[:8192]),
    }
    if len(out) > limit:
        answer["cut"] = True
    return answer


def ask_all(commands: "List[List[str]]", seconds: float = 5.0) -> "List[Dict[str, Any]]":
    """Several commands side by side, four at a time."""
    return side_by_side(lambda argv: ask(argv, seconds), commands)


def side_by_side(function: "Callable[[Any], Dict[str, Any]]", values: "List[Any]") -> "List[Dict[str, Any]]":
    """The function's answer to each value, four at a time; an exception of one is raised here.

    Plain threads: `concurrent.futures` brings logging with it, 20 ms of the host's time at each recording.
    """
    answers: "List[Dict[str, Any]]" = [{} for _ in values]
    waiting = list(enumerate(values))
    failures: "List[Exception]" = []

    def work() -> None:
        while True:
            try:
                at, value = waiting.pop()
            except IndexError:
                return
            try:
                answers[at] = function(value)
            except Exception as e:
                failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(min(4, len(values)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return answers
