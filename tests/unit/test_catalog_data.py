"""The shipped rows are sound, and the check refuses those that are not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provision.catalog.check import problems
from provision.catalog.gpus import all_gpus
from provision.catalog.matrix import PAGE, page
from provision.catalog.preference import MEASURES
from provision.catalog.tables import DATA, Catalog, load
from provision.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

SHIPPED = load((DATA,))
ROOT = Path(__file__).parents[2]


def test_the_shipped_catalog_is_sound() -> None:
    assert list(problems(SHIPPED)) == []


def test_every_gpu_has_an_architecture_a_source_and_a_status() -> None:
    gpus = list(all_gpus(SHIPPED))
    assert len({g.device for g in gpus}) > 1200
    assert all(g.architecture in SHIPPED.architectures and g.source and g.status == "seen" for g in gpus)


def test_every_measure_is_in_the_documented_order() -> None:
    assert {p.key for p in SHIPPED.order} == set(MEASURES)


def test_the_page_of_the_matrix_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(SHIPPED), (
        "run `python -m provision.catalog.matrix`"
    )


def branches(raw: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {b["branch"]: b for b in raw["drivers"]["branches"]}


def no_source(raw: dict[str, Any]) -> None:
    raw["cuda"]["toolkits"][3]["source"] = []


def unknown_source(raw: dict[str, Any]) -> None:
    raw["nccl"]["builds"][0]["source"] = ["hearsay"]


def no_status(raw: dict[str, Any]) -> None:
    del raw["architectures"]["capabilities"][0]["status"]
    raw["architectures"]["capabilities"][0]["status"] = "probably"


def inferred_nothing(raw: dict[str, Any]) -> None:
    raw["cuda"]["toolkits"][0]["inferred"] = ["flavour"]


def overlapping_ranges(raw: dict[str, Any]) -> None:
    raw["cudnn"]["ranges"][2]["last"] = "9.2"


def overlapping_packages(raw: dict[str, Any]) -> None:
    raw["packages"]["drivers"][0]["first"] = 585


def early_end(raw: dict[str, Any]) -> None:
    branches(raw)[580]["eol"] = "2025-07"


def no_end(raw: dict[str, Any]) -> None:
    branches(raw)[580]["eol"] = None


def foreign_release(raw: dict[str, Any]) -> None:
    branches(raw)[580]["newest"] = "581.10"


def older_newest(raw: dict[str, Any]) -> None:
    branches(raw)[580]["newest"] = "580.10.01"


def unknown_chip(raw: dict[str, Any]) -> None:
    raw["architectures"]["chips"] = [c for c in raw["architectures"]["chips"] if "GB100" not in c["chips"]]


def toolkit_without_floor(raw: dict[str, Any]) -> None:
    row = dict(raw["cuda"]["toolkits"][-1], version="14.0.0", min="620.70.06", bundled=None)
    raw["cuda"]["toolkits"].append(row)


def branch_without_packages(raw: dict[str, Any]) -> None:
    row = dict(
        branches(raw)[620], branch=630, first="630.10.01", newest=None, modules=["open", "proprietary"]
    )
    raw["drivers"]["branches"].append(row)


def unasked_package(raw: dict[str, Any]) -> None:
    raw["packages"]["drivers"][0]["lockstep"] = ["nvidia-open", "nvidia-brand-new"]


REFUSED: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (no_source, "no source"),
    (unknown_source, "source hearsay is not in sources.yml"),
    (no_status, "status is 'probably'"),
    (inferred_nothing, "inferred names no field: flavour"),
    (overlapping_ranges, "ranges overlap"),
    (overlapping_packages, "overlap at R585"),
    (early_end, "end of life 2025-07 before the first release 2025-08-04"),
    (no_end, "neither eol nor ended"),
    (foreign_release, "a release of another branch"),
    (older_newest, "older than first"),
    (unknown_chip, "chip 'GB100' is not in architectures.yml"),
    (toolkit_without_floor, "CUDA 14.0 is in no row of minor_version"),
    (toolkit_without_floor, "no branch reports CUDA 14.0"),
    (toolkit_without_floor, "no range for CUDA 14"),
    (toolkit_without_floor, "nccl.yml: no release for CUDA 14"),
    (branch_without_packages, "no proprietary packages of R630 for debian"),
    (unasked_package, "POLICY does not ask for nvidia-brand-new"),
]


@pytest.mark.parametrize(("spoil", "says"), REFUSED, ids=lambda v: getattr(v, "__name__", None))
def test_an_unsound_catalog_is_refused(spoil: Callable[[dict[str, Any]], None], says: str) -> None:
    raw = copy.deepcopy({name: dict(document) for name, document in SHIPPED.raw.items()})
    spoil(raw)
    found = list(problems(Catalog(raw)))
    assert any(says in line for line in found), found


def test_a_site_lays_its_rows_over_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "drivers.yml").write_text(
        "branches:\n"
        "  - {branch: 630, type: NFB, first: '630.10.01', newest: null, eol: '2027-12',\n"
        "     max_cuda: '13.6', modules: [open], aarch64: true, status: seen, source: [site]}\n"
        "  - {branch: 620, type: PB, first: '620.70.06', newest: '620.80.01', eol: '2029-09',\n"
        "     max_cuda: '13.5', modules: [open], aarch64: true, status: seen, source: [site]}\n",
        encoding="utf-8",
    )
    (tmp_path / "sources.yml").write_text("site: {title: Our own measurements}\n", encoding="utf-8")
    (tmp_path / "gpus.tsv").write_text(
        "ffff\tNVIDIA Site Special\t\tGB100\t\t\t\t\tD\tsite\n", encoding="utf-8"
    )
    merged = load((DATA, tmp_path))
    assert merged.branches[630].max_cuda == "13.6"
    assert (merged.branches[620].type, merged.branches[620].newest) == ("PB", "620.80.01")
    assert merged.branches[580] == SHIPPED.branches[580]
    assert merged.says(["site"]) == "Our own measurements"
    special = [g for g in all_gpus(merged) if g.device == "ffff"]
    assert [g.architecture for g in special] == ["Blackwell"]
    assert list(problems(merged)) == []


def test_a_sites_file_of_an_unknown_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "driver.yml").write_text("branches: []\n", encoding="utf-8")
    with pytest.raises(Usage, match="no file of that name"):
        load((DATA, tmp_path))


@pytest.mark.parametrize("text", ["- a\n- list\n", "branches: [unclosed\n"])
def test_a_sites_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "drivers.yml").write_text(text, encoding="utf-8")
    with pytest.raises(Usage, match=r"drivers\.yml"):
        load((DATA, tmp_path))


def test_each_document_is_named_in_one_piece() -> None:
    """Whoever shows documents takes the text apart at `; `."""
    for key in SHIPPED.raw["sources"]:
        assert "; " not in SHIPPED.says([key])
