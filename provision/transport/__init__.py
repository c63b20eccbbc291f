"""SSH sessions, kept open or fresh, and the local machine. Knows nothing of GPUs."""
