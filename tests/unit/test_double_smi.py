"""nvidia-smi of the GPU double against what the real one is known to print."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from double_world import Host

from provision.lab.double.host import modules, nvml
from provision.lab.double.host.faults import clear, switch
from provision.lab.double.host.fields import SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Host]:
    return lambda gpus: Host(tmp_path, gpus, monkeypatch, capsys)


def captured() -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "double_elements.txt").read_text().splitlines():
        if line.startswith("["):
            block = blocks[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            block.append(line)
    return blocks


def elements(document: str) -> list[str]:
    found: list[str] = []

    def walk(element: ET.Element, depth: int) -> None:
        for child in element:
            if child.tag not in ("supported_mem_clock", "process_info"):
                found.append("  " * depth + child.tag)
                walk(child, depth + 1)

    gpu = ET.fromstring(document).find("gpu")
    assert gpu is not None
    walk(gpu, 0)
    return found


@pytest.mark.parametrize("what", captured())
def test_xml_has_the_elements_of_a_capture_of_that_branch(host: Callable[[str], Host], what: str) -> None:
    gpus, version, flavour = what.split()
    made = host(gpus)
    made.driver(version, is_open=flavour == "open")
    document, code = made.smi("-q", "-x")
    assert (elements(document), code) == (captured()[what], 0)


@pytest.mark.parametrize(
    ("version", "dtd", "cuda"),
    [
        ("470.256.02", 11, "11.4"),
        ("535.309.01", 12, "12.2"),
        ("550.163.01", 12, "12.4"),
        ("620.70.06", 13, "13.5"),
    ],
)
def test_xml_head_follows_the_branch(host: Callable[[str], Host], version: str, dtd: int, cuda: str) -> None:
    made = host("A100:2")
    made.driver(version)
    document, _ = made.smi("-q", "-x")
    assert f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{dtd}.dtd">' in document
    root = ET.fromstring(document)
    assert [root.findtext(name) for name in ("driver_version", "cuda_version", "attached_gpus")] == [
        version,
        cuda,
        "2",
    ]


def test_says_that_it_is_a_double_where_a_person_looks(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.driver("550.163.01")
    for command in (["-q", "-x"], ["--version"], ["-h"]):
        assert "GPU double, not real hardware" in made.smi(*command)[0]
    assert "DOUBLE" in made.smi("--query-gpu=serial", "--format=csv,noheader")[0]
    assert "double" in (made.root / "proc/driver/nvidia/version").read_text()
    assert "DOUBLE" in (ET.fromstring(made.smi("-q", "-x")[0]).findtext("gpu/serial") or "")


def test_before_there_is_a_driver(host: Callable[[str], Host]) -> None:
    made = host("T4")
    out, code = made.smi()
    assert (out.splitlines()[0][:44], code) == ("NVIDIA-SMI couldn't find libnvidia-ml.so lib", 12)
    made.user_space("535.309.01")
    out, code = made.smi("-q", "-x")
    assert out.startswith(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that"
    )
    assert code == 9


def test_loads_the_module_only_where_nvidia_modprobe_could(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.user_space("535.309.01")
    made.module("535.309.01")
    assert made.smi("-L")[1] == 9
    (made.root / "usr/bin/nvidia-modprobe").write_text("")
    # It asks for a module called nvidia, which on Debian is an alias that comes with libcuda1.
    assert made.smi("-L")[1] == 9
    (made.root / "etc/modprobe.d/nvidia.conf").write_text("alias nvidia nvidia-current-open\n")
    assert made.smi("-L")[1] == 0


def test_mismatch_names_the_library_with_two_numbers(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.driver("550.54.14")
    made.user_space("550.163.01")
    assert made.smi("-L") == (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.163\n",
        18,
    )


@pytest.mark.parametrize(
    ("fault", "says", "code"),
    [
        ("unknown-error", "Failed to initialize NVML: Unknown Error\n", 255),
        ("no-permission", "Failed to initialize NVML: Insufficient Permissions\n", 4),
        ("no-devices", "No devices were found\n", 6),
        (
            "version-mismatch",
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.309\n",
            18,
        ),
        ("off-the-bus", "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n", 255),
    ],
)
def test_faults_answer_in_the_real_words(
    host: Callable[[str], Host], fault: str, says: str, code: int
) -> None:
    made = host("T4:2")
    made.driver("535.309.01")
    switch(made.world.kept, fault, 0 if fault == "off-the-bus" else None)
    for command in (["-q", "-x"], ["-L"], ["topo", "-m"], []):
        assert made.smi(*command) == (says, code)
    clear(made.world.kept)
    assert made.smi("-L")[1] == 0


def test_a_gpu_off_the_bus_stops_nothing_for_the_others(host: Callable[[str], Host]) -> None:
    made = host("T4:2")
    made.driver("535.309.01")
    switch(made.world.kept, "off-the-bus", 1)
    assert made.smi("-i", "0", "--query-gpu=index", "--format=csv,noheader") == ("0\n", 0)
    assert made.smi("-i", "1", "--query-gpu=index", "--format=csv,noheader")[1] == 255


def test_hang_ignores_what_asks_it_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[int] = []

    class Woken(Exception):
        pass

    def sleep(seconds: float) -> None:
        raise Woken

    monkeypatch.setattr(nvml.signal, "signal", lambda number, _: ignored.append(number))
    monkeypatch.setattr(nvml.time, "sleep", sleep)
    with pytest.raises(Woken):
        nvml.hang()
    assert nvml.signal.SIGTERM in ignored


def test_a_lost_gpu_keeps_the_document_whole(host: Callable[[str], Host]) -> None:
    made = host("H100:2")
    made.driver("580.105.08")
    whole = elements(made.smi("-q", "-x")[0])
    switch(made.world.kept, "lost", 1)
    root = ET.fromstring(made.smi("-q", "-x")[0])
    lost = root.findall("gpu")[1]
    assert lost.findtext("temperature/gpu_temp") == "GPU is lost"
    assert lost.findtext("product_name") == "NVIDIA H100 80GB HBM3"
    assert root.findtext("gpu/temperature/gpu_temp") == "29 C"
    assert elements(made.smi("-q", "-x")[0]) == whole
    assert made.smi("--query-gpu=temperature.gpu", "--format=csv,noheader")[0] == "29\n[GPU is lost]\n"


def test_csv(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    made.driver("550.163.01")
    out, code = made.smi("--query-gpu=index,gpu_name,clocks.mem,power.limit,fan.speed", "--format=csv")
    assert code == 0
    assert out.splitlines() == [
        "index, name, clocks.current.memory [MHz], power.limit [W], fan.speed [%]",
        "0, NVIDIA A100-SXM4-80GB, 1593 MHz, 400.00 W, [N/A]",
        "1, NVIDIA A100-SXM4-80GB, 1593 MHz, 400.00 W, [N/A]",
    ]
    out, _ = made.smi("--query-gpu=clocks.mem,power.limit", "--format=csv,noheader,nounits", "-i", "1")
    assert out == "1593, 400.00\n"
    assert made.smi("--query-gpu=nam", "--format=csv") == (
        'Field "nam" is not a valid field to query.\n\n',
        2,
    )
    assert made.smi("--query-gpu=name")[1] == 2
    assert made.smi("--query-gpu=name", "--format=json") == ("Format modifier is not recognized.\n", 2)
    for spelling, name in SYNONYMS.items():
        table = [made.smi(f"--query-gpu={each}", "--format=csv") for each in (spelling, name)]
        assert table[0] == table[1]


def test_supported_clocks(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.driver("550.163.01")
    rows = made.smi("--query-supported-clocks=mem,gr", "--format=csv")[0].splitlines()
    assert rows[:2] == ["memory [MHz], graphics [MHz]", "5001 MHz, 1590 MHz"]
    # 87 and 24 steps: read in a public capture of a T4.
    assert len(rows) == 1 + 87 + 24


def test_clock_steps_of_half_megahertz_are_rounded_down(host: Callable[[str], Host]) -> None:
    made = host("B200:8")
    made.driver("580.105.08")
    rows = made.smi("-i", "0", "--query-supported-clocks=gr", "--format=csv,noheader,nounits")[0].split()
    # 247 steps for each of two memory clocks, from 1965 to 120: read in a public capture of a B200.
    assert (len(rows), rows[:3], rows[246]) == (494, ["1965", "1957", "1950"], "120")


def test_settings_need_persistence_to_last(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    made.driver("535.309.01")
    out, code = made.smi("-lgc", "1410,1410", "-i", "0")
    assert code == 0
    assert 'GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU 00000000:03:00.0\nAll done.\n' in out
    assert out.startswith("Warning: persistence mode is disabled on device 00000000:03:00.0.")
    clocks = ("--query-gpu=persistence_mode,clocks.sm", "--format=csv,noheader,nounits")
    assert made.smi(*clocks)[0] == "Disabled, 210\nDisabled, 210\n"
    assert (
        made.smi("-pm", "1", "-i", "0")[0]
        == "Enabled persistence mode for GPU 00000000:03:00.0.\nAll done.\n"
    )
    assert made.smi("-pm", "1", "-i", "0")[0].startswith("Persistence mode is already Enabled for GPU")
    assert made.smi("-lgc", "1410", "-i", "0")[0].startswith("GPU clocks set to")
    assert made.smi(*clocks)[0] == "Enabled, 1410\nDisabled, 210\n"
    assert made.smi("-pm", "0")[1] == 0
    assert made.smi(*clocks)[0] == "Disabled, 210\nDisabled, 210\n"


def test_application_clocks(host: Callable[[str], Host]) -> None:
    made = host("A100:1")
    made.driver("535.309.01")
    made.smi("-pm", "1")
    asked = (
        "--query-gpu=clocks.applications.graphics,clocks.default_applications.graphics",
        "--format=csv,noheader,nounits",
    )
    assert made.smi(*asked)[0] == "1275, 1275\n"
    out, code = made.smi("-ac", "1593,1410")
    assert (out, code) == (
        'Applications clocks set to "(MEM 1593, SM 1410)" for GPU 00000000:03:00.0\nAll done.\n',
        0,
    )
    assert made.smi(*asked)[0] == "1410, 1275\n"
    assert made.smi("-rac") == ("All done.\n", 0)
    assert made.smi(*asked)[0] == "1275, 1275\n"
    out, code = made.smi("-ac", "1593,1411")
    assert code == 2
    assert out.startswith(
        'Specified clock combination "(MEM 1593, SM 1411)" is not supported for GPU 00000000:03:00.0. Run'
    )
    assert out.endswith("Terminating early due to previous errors.\n")


def test_not_supported_is_a_warning_and_no_failure(host: Callable[[str], Host]) -> None:
    made = host("RTX-3090:1")
    made.driver("535.309.01")
    said = (
        "Setting applications clocks is not supported for GPU 00000000:01:00.0.\n"
        "Treating as warning and moving on.\nAll done.\n"
    )
    assert made.smi("-ac", "9751,2100") == (said, 0)
    assert made.smi("-ac", "9751,2100", "-eow") == (said, 3)


@pytest.mark.parametrize("by_fault", [False, True])
def test_application_clocks_are_deprecated_from_590(host: Callable[[str], Host], *, by_fault: bool) -> None:
    made = host("H100:1")
    made.driver("580.105.08" if by_fault else "595.91.07")
    if by_fault:
        assert made.smi("-ac", "2619,1980")[1] == 0
        switch(made.world.kept, "clocks-deprecated")
    out, code = made.smi("-ac", "2619,1980")
    assert "Requested functionality has been deprecated" in out
    assert code != 0
    gone = "[Requested functionality has been deprecated]\n"
    assert made.smi("--query-gpu=clocks.applications.graphics", "--format=csv,noheader")[0] == gone
    text = ET.fromstring(made.smi("-q", "-x")[0]).findtext("gpu/applications_clocks/graphics_clock")
    assert text == "Requested functionality has been deprecated"


def test_settings_want_root(host: Callable[[str], Host], monkeypatch: pytest.MonkeyPatch) -> None:
    made = host("T4")
    made.driver("535.309.01")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert made.smi("-pm", "1") == (
        "Unable to set persistence mode for GPU 00000000:01:00.0: Insufficient Permissions\n"
        "Terminating early due to previous errors.\n",
        4,
    )
    assert made.smi("-lgc", "600")[0].startswith(
        "The current user does not have permission to change clocks for GPU"
    )
    assert made.smi("--query-gpu=persistence_mode", "--format=csv,noheader")[0] == "Disabled\n"


@pytest.mark.parametrize(
    "args",
    [
        ["-lgc", "fast"],
        ["-lgc", "9999,100"],
        ["-ac", "1593"],
        ["-pm", "2"],
        ["-pl", "9"],
        ["-ac"],
        ["--no-such"],
    ],
)
def test_wrong_values_change_nothing(host: Callable[[str], Host], args: list[str]) -> None:
    made = host("A100:1")
    made.driver("535.309.01")
    made.smi("-pm", "1")
    before = made.smi("--query-gpu=clocks.sm,power.limit,persistence_mode", "--format=csv")
    assert made.smi(*args)[1] == 2
    assert made.smi("--query-gpu=clocks.sm,power.limit,persistence_mode", "--format=csv") == before


def test_plain_query_and_its_sections(host: Callable[[str], Host]) -> None:
    made = host("T4")
    made.driver("550.163.01")
    out, code = made.smi("-q")
    assert code == 0
    assert re.search(r"^Attached GPUs +: 1$", out, re.M)
    assert re.search(r"^    Product Name +: Tesla T4$", out, re.M)
    assert "Supported Clocks" not in out
    part = made.smi("-q", "-d", "CLOCK")[0]
    assert "Max Clocks" in part
    assert "Product Name" not in part
    assert "        Memory" in made.smi("-q", "-d", "SUPPORTED_CLOCKS")[0]
    assert made.smi("-q", "-d", "WEATHER")[1] == 2


def test_the_table_is_square(host: Callable[[str], Host]) -> None:
    made = host("H100:8")
    made.driver("550.163.01")
    lines = made.smi()[0].splitlines()[1:]
    assert {len(line) for line in lines} == {91}
    assert sum("NVIDIA H100 80GB HBM3" in line for line in lines) == 8


def test_select_by_any_name(host: Callable[[str], Host]) -> None:
    made = host("T4:2")
    made.driver("550.163.01")
    uuid = made.smi("-i", "1", "--query-gpu=uuid", "--format=csv,noheader")[0].strip()
    for word in ("1", uuid, "00000000:09:00.0", "0000:09:00.0"):
        assert made.smi("-i", word, "--query-gpu=index", "--format=csv,noheader") == ("1\n", 0)
    assert made.smi("-i", "7", "-L") == ("No devices were found\n", 6)


def test_reading_writes_nothing(host: Callable[[str], Host]) -> None:
    made = host("A100:2")
    made.driver("535.309.01")
    before = {path: path.stat().st_mtime_ns for path in made.root.rglob("*") if path.is_file()}
    for command in (["-q", "-x"], ["topo", "-m"], ["-L"], ["nvlink", "-s"]):
        assert made.smi(*command)[1] == 0
    assert {path: path.stat().st_mtime_ns for path in made.root.rglob("*") if path.is_file()} == before


def test_health_faults_show_in_the_document(host: Callable[[str], Host]) -> None:
    made = host("H100:2")
    made.driver("580.105.08")
    wanted = {
        "ecc-uncorrectable": ("ecc_errors/volatile/dram_uncorrectable", "5"),
        "remap-pending": ("remapped_rows/remapped_row_pending", "Yes"),
        "remap-failure": ("remapped_rows/remapped_row_failure", "Yes"),
        "recovery-reset": ("gpu_recovery_action", "Reset"),
        "pcie-width": ("pci/pci_gpu_link_info/link_widths/current_link_width", "4x"),
        "throttle": ("clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown", "Active"),
    }
    for fault, (path, text) in wanted.items():
        sound = ET.fromstring(made.smi("-q", "-x")[0]).findall("gpu")
        assert [gpu.findtext(path) == text for gpu in sound] == [False, False]
        switch(made.world.kept, fault, 1)
        sick = ET.fromstring(made.smi("-q", "-x")[0]).findall("gpu")
        assert [gpu.findtext(path) == text for gpu in sick] == [False, True]
        clear(made.world.kept)


def test_a_driver_that_serves_none_of_the_gpus(host: Callable[[str], Host]) -> None:
    made = host("B200:8")
    made.user_space("580.105.08")
    modules.load(made.world, made.module("580.105.08", is_open=False))
    assert made.smi("-L") == ("No devices were found\n", 6)
    assert "requires use of the NVIDIA open kernel modules" in made.log()
