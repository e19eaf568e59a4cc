"""Which Halo this is."""

from __future__ import annotations


def halo_version() -> str:
    """As installed; a checkout that was never installed has none."""
    from importlib import metadata  # every command comes by here, and this takes a fifth of a short one

    try:
        return f"Halo {metadata.version('halo')}"
    except metadata.PackageNotFoundError:
        return "Halo (not installed)"
