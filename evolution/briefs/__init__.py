"""The messages that the internal agents are given: one module a phase, each a dataclass and a function.

A brief is plain text in labelled sections, written for a language model and readable by the offline engine
alike (``agents.providers.offline.brief`` is the reader). Text that comes from a conversation, from a model or
from a person stands in fenced blocks that it can't close (``layout.block``).
"""
