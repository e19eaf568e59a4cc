"""The settings that bound one turn, as the plain values the loop is handed."""

from __future__ import annotations

from agents.tools.context import WebRules
from agents.turn import ContextRules, Limits
from core.settings_file import Settings
from workspaces.agent_yaml import AgentConfig


def limits_of(settings: Settings) -> Limits:
    return Limits(
        max_model_calls=settings.get("general.session.max_model_calls"),
        shell_timeout_sec=settings.get("general.limits.shell_timeout_sec"),
        shell_output_bytes=settings.get("general.limits.shell_output_bytes"),
        sandbox_memory_mb=settings.get("general.sandbox.memory_mb"),
        sandbox_processes=settings.get("general.sandbox.processes"),
        sandbox_file_mb=settings.get("general.sandbox.file_mb"),
        tool_result_chars=settings.get("general.limits.tool_result_chars"),
        tool_result_ui_chars=settings.get("general.limits.tool_result_ui_chars"),
    )


def context_rules_of(settings: Settings, agent: AgentConfig) -> ContextRules:
    """``agent.yaml``'s ``context`` and the settings ``general.compact.*``."""
    return ContextRules(
        max_tokens=agent.context_max_tokens,
        compress_at=agent.compress_at,
        keep_messages=settings.get("general.compact.keep_messages"),
        summarize_timeout_sec=settings.get("general.compact.summarize_timeout_sec"),
    )


def web_rules_of(settings: Settings) -> WebRules:
    return WebRules(
        max_bytes=settings.get("general.limits.web_fetch_bytes"),
        allow_private=tuple(settings.get("general.web_fetch.allow_private")),
    )
