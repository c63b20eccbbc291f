"""The command line of nvidia-smi."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .nvml import INVALID, NOT_FOUND, Refusal, connect, need_handles
from .world import MARK, World

if TYPE_CHECKING:
    from .gpu import Gpu

LONG = {
    "--help": "-h",
    "--list-gpus": "-L",
    "--query": "-q",
    "--xml-format": "-x",
    "--id": "-i",
    "--display": "-d",
    "--filename": "-f",
    "--persistence-mode": "-pm",
    "--applications-clocks": "-ac",
    "--reset-applications-clocks": "-rac",
    "--lock-gpu-clocks": "-lgc",
    "--reset-gpu-clocks": "-rgc",
    "--lock-memory-clocks": "-lmc",
    "--reset-memory-clocks": "-rmc",
    "--power-limit": "-pl",
    "--compute-mode": "-c",
    "--ecc-config": "-e",
    "--multi-instance-gpu": "-mig",
    "--error-on-warning": "-eow",
    "--mode": "--mode",
    "--query-gpu": "--query-gpu",
    "--format": "--format",
    "--query-supported-clocks": "--query-supported-clocks",
    "--query-compute-apps": "--query-compute-apps",
    "--version": "--version",
}
TAKES_VALUE = {
    "-i",
    "-d",
    "-f",
    "-pm",
    "-ac",
    "-lgc",
    "-lmc",
    "-pl",
    "-c",
    "-e",
    "-mig",
    "--mode",
    "--query-gpu",
    "--format",
    "--query-supported-clocks",
    "--query-compute-apps",
}
CHANGES = {"-pm", "-ac", "-rac", "-lgc", "-rgc", "-lmc", "-rmc", "-pl", "-c", "-e", "-mig"}
PLAIN = {"-h", "-L", "-q", "-x", "-rac", "-rgc", "-rmc", "-eow", "--version"}


def main(world: World, args: list[str]) -> int:
    """Run nvidia-smi -> its exit code. What the real one prints goes to standard output, refusals too."""
    if sys.stdout.isatty():
        print(f"({MARK})", file=sys.stderr)
    try:
        if args and args[0] in ("-h", "--help"):
            print(help_text(world.userspace_version() or "?"), end="")
            return 0
        out, code = _run(world, args)
    except Refusal as refusal:
        out, code = refusal.text, refusal.code
    sys.stdout.write(out)
    return code


def parse(args: list[str]) -> dict[str, str]:
    """Options by their short name. Raises Refusal as the real program words it."""
    options: dict[str, str] = {}
    queue = list(args)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        option = LONG.get(name, name)
        if option in TAKES_VALUE:
            if not equals:
                if not queue:
                    raise Refusal(
                        f"ERROR: Option {word} is missing its value. Please run 'nvidia-smi -h' for help.\n",
                        INVALID,
                    )
                value = queue.pop(0)
            options[option] = value
        elif option in PLAIN and not equals:
            options[option] = ""
        else:
            raise Refusal(f"ERROR: Option {word} is not recognized. Please run 'nvidia-smi -h'.\n", INVALID)
    return options


def select(gpus: list[Gpu], wanted: str | None) -> list[Gpu]:
    """The GPUs that -i names, by index, bus id, UUID or serial number. Raises Refusal where there are
    none.
    """
    if wanted is None:
        return gpus
    chosen = []
    for each in wanted.split(","):
        word = each.strip()
        found = [
            gpu
            for gpu in gpus
            if word in (str(gpu.minor), gpu.gpu["uuid"], gpu.gpu["serial"])
            or word.upper() in (gpu.bus_id, gpu.bus_id[4:], gpu.bus_id[9:])
        ]
        if not found:
            raise Refusal("No devices were found\n", NOT_FOUND)
        chosen += found
    return chosen


def _run(world: World, args: list[str]) -> tuple[str, int]:
    # Each form brings in only what it needs: recordings call this several times, one after another.
    gpus = connect(world)
    if args and args[0] in ("topo", "nvlink"):
        from . import topo

        need_handles(gpus)
        return (topo.topo if args[0] == "topo" else topo.nvlink)(gpus, args[1:]), 0
    options = parse(args)
    shown = select(gpus, options.get("-i"))
    if "--version" in options:
        return version_text(gpus[0]), 0
    need_handles(shown)
    changes = [option for option in options if option in CHANGES]
    if len(changes) > 1:
        only = "Only one device modification may be done at a time."
        raise Refusal(f"Invalid combination of input arguments. {only}\n", INVALID)
    if changes:
        from . import settings

        return settings.change(shown, changes[0], options[changes[0]], strict="-eow" in options)
    out = _show(gpus, shown, options)
    if "-f" in options:
        Path(options["-f"]).write_text(out)
        return "", 0
    return out, 0


def _show(gpus: list[Gpu], shown: list[Gpu], options: dict[str, str]) -> str:
    queries = [option for option in options if option.startswith("--query-")]
    if "-L" in options:
        return "".join(f"GPU {gpu.minor}: {gpu.product} (UUID: {gpu.gpu['uuid']})\n" for gpu in shown)
    if queries:
        from . import csv

        return csv.query(shown, queries[0], options[queries[0]], csv.Format(options.get("--format")))
    if "-x" in options and "-q" not in options:
        raise Refusal(
            "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an XML "
            "query.  Please run 'nvidia-smi -h' for help.\n",
            INVALID,
        )
    if "-x" in options and "-d" in options:
        raise Refusal(
            "Invalid combination of input arguments: "
            "--display/-d flags can not be combined with -x/--xml-format flags.\n",
            INVALID,
        )
    if "-x" in options:
        from . import xml

        return xml.xml_document(gpus, shown)
    from . import text

    return text.query(gpus, shown, options.get("-d")) if "-q" in options else text.table(gpus, shown)


def version_text(gpu: Gpu) -> str:
    from .xml import cuda_version

    short = ".".join(gpu.version.split(".")[:2])
    rows = {
        "NVIDIA-SMI version": gpu.version,
        "NVML version": short,
        "DRIVER version": gpu.version,
        "CUDA Version": cuda_version(gpu.branch),
    }
    return f"{MARK}\n" + "".join(f"{name:<20}: {value}\n" for name, value in rows.items())


def help_text(version: str) -> str:
    return f"""NVIDIA System Management Interface -- v{version}
({MARK}: this is what stands in for nvidia-smi on a lab host.)

nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...

    -h,   --help                          Print usage information and exit.
          --version                       Print version information and exit.
    -L,   --list-gpus                     List the GPUs.
    -i,   --id=                           Only these GPUs: index, PCI bus id, UUID or serial number.
    -q,   --query                         All of the GPUs; -x as XML, -d some sections, -f to a file.
    --query-gpu= --query-supported-clocks= --query-compute-apps= with --format=csv[,noheader][,nounits]
    -pm   --persistence-mode=             0/DISABLED, 1/ENABLED
    -ac   --applications-clocks=          memory,graphics in MHz; -rac resets
    -lgc  --lock-gpu-clocks=              min,max in MHz; -rgc resets
    -lmc  --lock-memory-clocks=           min,max in MHz; -rmc resets
    -pl   --power-limit=                  in W
    -c    --compute-mode=                 0/DEFAULT, 2/PROHIBITED, 3/EXCLUSIVE_PROCESS
    -e    --ecc-config=                   0/DISABLED, 1/ENABLED, from the next reboot on
    -mig  --multi-instance-gpu=           0/DISABLED, 1/ENABLED
    -eow  --error-on-warning              Return a non-zero error for warnings.
    topo -m                               How GPUs and NICs are joined.
    nvlink -s                             State of the NVLinks.
"""
