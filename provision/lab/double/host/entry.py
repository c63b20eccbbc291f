#!/usr/bin/python3 -IS
"""GPU double, not real hardware: stands in, on a lab host, for the program it is called as."""

import sys

# Compiled code goes where a reboot clears it: running this changes no file of the host.
sys.pycache_prefix = "/run/gpu-double/pycache"
sys.path.insert(0, "/usr/lib/gpu-double")

from gpu_double.main import run  # noqa: E402

run()
