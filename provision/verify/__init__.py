"""Proving behaviour from outside, with testinfra and plain OpenSSH."""
