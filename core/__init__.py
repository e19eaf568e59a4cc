"""Ground floor: paths, atomic files, processes, clock, ids, settings file. No Django outside ``core.db``."""
