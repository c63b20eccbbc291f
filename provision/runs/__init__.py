"""The flows over one or many hosts: look, plan, converge in passes, look again, verify, report."""
