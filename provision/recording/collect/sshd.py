"""What sshd reads and what it makes of it."""

import glob
import os
import re

from .asking import ask, ask_all, program
from .files import file
from .people import operator_address, operator_name
from .reading import command_line, processes
from .sshd_cases import sshd_cases

MYPY = False
if MYPY:
    from typing import Any, Dict, List


def _in_container(pid: int) -> bool:
    """Whether a process belongs to a container on this host, whose sshd is not the host's."""
    try:
        return os.readlink("/proc/%d/ns/pid" % pid) != os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def sshd_arguments() -> "List[str]":
    """-f, -o and -p of the running listener (RHEL hands its crypto policy over that way)."""
    for pid, name, _ in processes():
        if name == "sshd" and not _in_container(pid):
            text = command_line(pid)
            if "[listener]" in text or re.match(r"(?:sshd: )?\S*/sshd\b", text):
                words = text.replace("[listener]", " ").split()
                kept: "List[str]" = []
                for index, word in enumerate(words):
                    if word in ("-f", "-o", "-p") and index + 1 < len(words):
                        kept += [word, words[index + 1]]
                    elif re.match(r"-[fop].", word):
                        kept.append(word)
                return kept
    return []


def sshd_files(main: str = "/etc/ssh/sshd_config") -> "Dict[str, Any]":
    """Each file that sshd reads, in the order read.

    An Include takes effect where it stands (sshd_config(5)).
    """
    found: "List[Dict[str, Any]]" = []

    def visit(path: str, depth: int) -> None:
        answer = dict(file(path), path=path)
        found.append(answer)
        for line in answer.get("text", "").splitlines():
            include = re.match(r"(?i)\s*include\s*=?\s*(.+)", line)
            if include and depth < 16 and len(found) < 200:
                for pattern in re.findall(r"\"([^\"]*)\"|(\S+)", include.group(1).split(" #")[0]):
                    name = pattern[0] or pattern[1]
                    if not name.startswith("/"):
                        name = os.path.join("/etc/ssh", name)
                    for each in sorted(glob.glob(name)):
                        visit(each, depth + 1)

    arguments = sshd_arguments()
    for index, word in enumerate(arguments):
        if word.startswith("-f"):
            main = word[2:] or (arguments[index + 1 :] or [main])[0]
    visit(main, 0)
    if found[0].get("missing") or found[0].get("denied"):
        return found[0]
    return {"files": found}


def _without_match(files: "List[Dict[str, Any]]") -> bool:
    """True where every file was read whole and none has a Match block."""
    whole = bool(files) and all("text" in entry and not entry.get("cut") for entry in files)
    return whole and not any(re.search(r"(?im)^\s*match\b", entry["text"]) for entry in files)


def sshd_effective() -> "Dict[str, Any]":
    """`sshd -T` for several users and addresses."""
    if program("sshd") is None:
        return {"missing": True}
    files = sshd_files().get("files", [])
    arguments = sshd_arguments()
    commands = []
    cases = sshd_cases(files)
    for case in cases:
        triple = dict({"host": case["addr"], "laddr": "127.0.0.1", "lport": "22"}, **case)
        wanted = ",".join("%s=%s" % pair for pair in sorted(triple.items()))
        commands.append(["sshd", "-T", *arguments, "-C", wanted])
    if _without_match(files):
        # Then users and addresses make no difference to `sshd -T`: one question answers for all.
        answered = [ask(commands[0])] * len(commands)
    else:
        answered = ask_all(commands, 5.0)
    answers = []
    for case, said in zip(cases, answered):
        answer = dict(
            {key: said[key] for key in ("rc", "stdout", "stderr", "timed_out") if key in said},
            user=case["user"],
        )
        answer.update({key: case[key] for key in ("addr", "host", "laddr", "lport") if key in case})
        answers.append(answer)
    document: "Dict[str, Any]" = {
        "cases": answers,
        "arguments": arguments,
        "operator": {"user": operator_name(), "addr": operator_address()},
    }
    if os.geteuid() != 0 and all(answer.get("rc") for answer in answers):
        document["denied"] = True
    return document
