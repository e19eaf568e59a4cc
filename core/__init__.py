"""Ground floor: paths, atomic files, processes, clock, ids, the settings file. No Django outside ``core.db``."""
