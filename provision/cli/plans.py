"""Plans in files: saved by `plan --out`, run by `--plan`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.plan.saved import SavedPlan
    from provision.runs.host import Traveller


def save(path: str, travellers: Iterable[Traveller]) -> None:
    """Write the plans of those hosts that have one. Raises Failure where the file cannot be written."""
    from provision.plan.saved import document
    from provision.report import documents

    from .output import writing

    made = [
        (t.plan, t.look.judged.profile.variables)
        for t in travellers
        if t.plan and t.look and t.failure is None
    ]
    with writing(path) as stream:
        stream.write(documents.dump(document(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", made)))
    click.echo(f"saved the plans of {len(made)} host{'' if len(made) == 1 else 's'} in {path}", err=True)


def load(path: str, hosts: Iterable[str]) -> dict[str, SavedPlan]:
    """The plans in a file. Raises Usage where it is none, or lacks one of the hosts."""
    from provision.plan.saved import NoPlan, read

    again = "`gpu-provision plan HOST... --out PLAN` makes one"
    try:
        plans = read(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise Usage(f"--plan {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise Usage(f"--plan {path} is no saved plan: it is no UTF-8 text (byte {e.start})", do=again) from e
    except NoPlan as e:
        raise Usage(f"--plan {path} is no saved plan: {e}", do=again) from e
    if lacking := [host for host in hosts if host not in plans]:
        raise Usage(f"--plan {path} has no plan of {', '.join(lacking)}", do=again)
    return plans
