"""The Workspace row, and reading the prompt surface: override rules, composing, ``agent.yaml``, ``SKILL.md``."""
