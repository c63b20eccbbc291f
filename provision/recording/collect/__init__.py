"""The program that runs on the host: asks all questions at once, changes nothing, prints one document.

All modules of this folder travel together on standard input (`python3 -`; see `recording.program`) and
need nothing but the standard library of Python 3.6 or newer. `typing` costs 10 ms to import there, so
its names are imported for mypy only and stand in quotes. The questions come with the program, as data
(see `recording.items`). What it promises:

- Nothing on the host changes. Where the kernel lets it (root, Linux 5.12 or newer), it says so to the
  kernel: all file systems are read-only for this program and its children, in a mount namespace of
  their own, and children can neither load modules nor make device nodes. Elsewhere only questions that
  change nothing are asked.
- Each item has a time limit, and so has the whole. A child that does not even die when it is killed
  (it sleeps in the driver) is not waited for: the answer names it.
- Output is bounded; what was cut is marked. Passwords and tokens are masked before anything is sent.
"""
