"""The command's front door: finds the module of a subcommand only when it is asked for, and ends every
failure in one message and the contract's exit code."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from provision import __version__
from provision.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

# command -> (attribute of provision.cli.<module>, one line for the overview). The line stands here so
# that `--help` imports none of them.
COMMANDS = {
    "resolve": ("resolve:resolve", "The matching driver, CUDA, cuDNN and NCCL for a GPU, with reasons."),
    "catalog": ("catalog:catalog", "Look into the catalog of GPUs and releases."),
    "record": ("record:record", "Record the raw state of hosts, changing nothing."),
    "audit": ("audit:audit", "Judge hosts or saved recordings, changing nothing."),
    "topology": ("topology:topology", "GPU and NIC topology of a host."),
    "plan": ("plan:plan", "Show what bootstrap would change."),
    "bootstrap": ("bootstrap:bootstrap", "Take hosts from an address to proven GPU servers."),
    "apply": ("apply:apply", "Run some of the roles on hosts, or all of them once more."),
    "snapshot": ("snapshot:snapshot", "Keep on hosts what is needed to put them back."),
    "snapshots": ("snapshot:snapshots", "List, show, compare or take away the snapshots of a host."),
    "upgrade": ("upgrade:upgrade", "Move the driver or CUDA, and back where the proof fails."),
    "rollback": ("rollback:rollback", "Put a host back as a snapshot has it."),
    "history": ("history:history", "What was done to a host from this machine."),
    "verify": ("verify:verify", "Prove a host's behaviour from outside."),
    "lab": ("lab:lab", "Lab hosts on this machine, with a GPU double."),
}
INTERRUPTED = 130
READER_GONE = 128 + signal.SIGPIPE
"""What the shell reports of any program whose reader went away before its end."""


class ReaderGone(Exception):
    """Standard output, or error, is read no more (`| head`)."""


@contextmanager
def _reader_watched() -> Iterator[None]:
    """click would end the process with 1 for a reader that went away, and 1 says something else."""
    try:
        yield
    except BrokenPipeError as e:
        raise ReaderGone from e


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name][0].split(":")
        command: click.Command = getattr(importlib.import_module(f"provision.cli.{module}"), attribute)
        return command

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """Prints help and version by itself."""
        with _reader_watched():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_watched():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="gpu-provision")
def cli() -> None:
    """Take GPU servers from an address to proven fit for training, and tell the truth about those that others
    set up.

    HOST is a host or group of the inventory, a lab host, `lab`, `local`, or [user@]address[:port].
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and leave with the contract's exit code: never a traceback for a known failure."""
    _open_missing_streams()
    # A request to end is a Ctrl-C: connections are closed, and each host's state is named. Where the caller
    # has it ignored (nohup and its kin), it stays so.
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        # Outside standalone mode click returns what a command returns, and the status of ctx.exit().
        code: Any = cli.main(args=arguments, prog_name="gpu-provision", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except Failure as e:
        _say(str(e))
        sys.exit(e.exit_code)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except (BrokenPipeError, ReaderGone):
        # Nothing to say, and Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)
    except OSError as e:
        # A full disk, a home that cannot be written: the machine's trouble, not a defect.
        _say(": ".join(filter(None, (str(e.filename or ""), e.strerror or str(e)))))
        with suppress(OSError):
            sys.stdout.close()  # what is left in it cannot be written, and Python must not try at exit
        sys.exit(Failure.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _open_missing_streams() -> None:
    """Closed by the caller (`>&-`): a file opened next would take the number, and be written into."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _say(text: str) -> None:
    click.echo(f"gpu-provision: {text}", err=True)
