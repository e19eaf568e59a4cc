"""The settings that bound one turn, as the plain value the loop is handed."""

from __future__ import annotations

from agents.turn import Limits
from core.settings_file import Settings


def limits_of(settings: Settings) -> Limits:
    return Limits(
        max_model_calls=settings.get("general.session.max_model_calls"),
        shell_timeout_sec=settings.get("general.limits.shell_timeout_sec"),
        shell_output_bytes=settings.get("general.limits.shell_output_bytes"),
        tool_result_chars=settings.get("general.limits.tool_result_chars"),
        tool_result_ui_chars=settings.get("general.limits.tool_result_ui_chars"),
    )
