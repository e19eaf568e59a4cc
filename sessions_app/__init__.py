"""Conversations: rows, logs, queue, and the engine that works turns."""
