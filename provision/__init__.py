"""gpu-provision: take a GPU server from an address to proven fit for training."""

__version__ = "0.1.0"
