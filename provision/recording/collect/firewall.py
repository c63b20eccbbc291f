"""The rule sets that are loaded."""

import os

from .asking import ask, program
from .reading import in_kernel, peek, processes

MYPY = False
if MYPY:
    from typing import Any, Dict, List


def firewall() -> "Dict[str, Any]":
    """The rule sets that are loaded. A tool is asked only where its tables are in the kernel already:
    listing would load the modules otherwise, and where they are absent there is no rule."""
    if os.geteuid() != 0:
        return {"denied": True}
    rules: "List[Dict[str, Any]]" = []
    no_tables = "its tables are not in the kernel: there is no rule"

    def tool(argv: "List[str]", here: bool) -> None:
        rules.append(ask(argv, 8.0, 1024 * 1024) if here else {"argv": argv, "not_asked": no_tables})

    tool(["nft", "list", "ruleset"], in_kernel("nf_tables"))
    for suffix, table_list in (("", "/proc/net/ip_tables_names"), ("6", "/proc/net/ip6_tables_names")):
        name = "ip%stables-legacy-save" % suffix
        if program(name) is None and program("ip%stables-save" % suffix):
            real = os.path.basename(os.path.realpath(program("ip%stables-save" % suffix) or ""))
            name = "ip%stables-save" % suffix if "nft" not in real else name
        tool([name], bool(peek(table_list)))
    # ufw is not asked: even `ufw status` writes a lock. Its chains are among the tables, its files are items.
    if any(name == "firewalld" for _, name, _ in processes()):
        rules.append(ask(["firewall-cmd", "--list-all-zones"], 8.0))
    return {"rules": rules}
