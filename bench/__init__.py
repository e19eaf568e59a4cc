"""Speed and memory with their targets beside them; ``make bench`` runs all parts and writes RESULTS.md.

A part is a module with ``measure() -> list[Measure]``. Each runs in a process and a ``HALO_HOME`` of its own.
"""
