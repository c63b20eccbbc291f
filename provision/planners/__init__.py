"""What a role has to make true on one host, computed from facts, profile and stack.

A planner is pure. The role writes what it returns, the control compares it with what the recording
shows: both read the same words, so they cannot disagree.
"""
