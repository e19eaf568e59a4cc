"""The embedded default provider: a deterministic rule engine, no key, no network, no language model.

It exists so that a newcomer sees everything work within a minute, and so that tests drive it through real
tool calls. ``model`` is the door; ``chat``, ``drafter``, ``scorer`` and ``merger`` are what it can do;
``rules`` holds the six forms of plain rules that it obeys; ``script`` lets a test make it fail.
"""

NAME = "offline rule engine, not a language model"
"""What it calls itself wherever it speaks of itself."""
