"""The steps of a run and an apply. Each knows its folder and sandbox; none knows a row or a status."""
