"""The profile of a host: the preset, the inventory and --set become one set of validated variables."""
