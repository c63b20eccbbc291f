#!/usr/bin/python3 -IS
"""GPU double, not real hardware: stands in, on a lab host, for the program it is called as."""

import sys
from importlib import import_module

# Compiled code goes where a reboot clears it: running this changes no file of the host.
sys.pycache_prefix = "/run/gpu-double/pycache"
sys.path.insert(0, "/usr/lib/gpu-double")

import_module("gpu_double.main").run()
