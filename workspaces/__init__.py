"""The Workspace row; reading the prompt surface: override rules, composing, agent.yaml, SKILL.md."""
