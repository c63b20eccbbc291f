"""The catalog of releases that fit together, and the resolver that chooses the matching set for a host."""

from __future__ import annotations

from .demands import Demands
from .gpus import PciId, UnknownGpu, find
from .offers import Offer, Offers
from .resolver import resolve
from .stack import Stack
from .support import Support, support
from .tables import Catalog, catalog

__all__ = [
    "Catalog",
    "Demands",
    "Offer",
    "Offers",
    "PciId",
    "Stack",
    "Support",
    "UnknownGpu",
    "catalog",
    "find",
    "resolve",
    "support",
]
