"""Typed readers and writers of every file in a run's or an apply's folder. No Django.

The layout is evolution.md's, "On disk".
"""
