"""Every setting: its key, default, bounds and what it does.

Validation, the admin's form and the documentation are made from this one list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.faults import shown
from core.setting import LookUp, Setting

PROVIDER_KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
}
"""The environment variables that stand in for ``<provider>.secrets.api_key``, in the order they are tried."""

MIN_HEARTBEAT_MINUTES = 3
"""A wrapper beats every 60 s and stops itself 60 s before the timeout; below this it could never work."""


def _integer(key: str, default: int, minimum: int, maximum: int, help_text: str, **more: Any) -> Setting:
    return Setting(key, "integer", default, help_text, minimum=minimum, maximum=maximum, **more)


def _samples(look_up: LookUp) -> int:
    return 1 if look_up("general.evolution.level") in ("L0", "L1") else 3


_LANGUAGE = r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,6}"
_URL = r"(https?://[^\s/?#]+[^\s]*)?"
_NETWORK = r"[A-Za-z0-9_.:*-]+(/\d{1,3})?"
_NON_EMPTY = r"\S(.*\S)?"

_EVOLUTION = (
    Setting(
        "general.evolution.level",
        "choice",
        "L0",
        "How much a run may do by itself. L0: only on request, a reviewer decides. L1: runs also start "
        "when a conversation is compacted. L2: prompt changes that pass all gates apply themselves. "
        "L3: capability changes as well.",
        choices=("L0", "L1", "L2", "L3"),
        is_global=True,
    ),
    _integer(
        "general.evolution.auto_apply_threshold",
        80,
        0,
        100,
        "The lowest score with which a run may apply itself at L2 and L3.",
        is_global=True,
    ),
    _integer(
        "general.evolution.max_concurrent_run", 1, 1, 64, "Runs that work at the same time.", is_global=True
    ),
    _integer(
        "general.evolution.max_concurrent_apply",
        1,
        1,
        64,
        "Applies that work at the same time; never more than one in a workspace.",
        is_global=True,
    ),
    _integer(
        "general.evolution.run_timeout_minutes",
        12,
        MIN_HEARTBEAT_MINUTES,
        1440,
        "A run whose heartbeat is older than this is taken over, in minutes.",
        is_global=True,
    ),
    _integer(
        "general.evolution.apply_timeout_minutes",
        5,
        MIN_HEARTBEAT_MINUTES,
        1440,
        "An apply whose heartbeat is older than this is taken over, in minutes.",
        is_global=True,
    ),
    _integer(
        "general.evolution.max_attempts",
        3,
        1,
        20,
        "How often a run or an apply is started before it counts as failed.",
        is_global=True,
    ),
    _integer(
        "general.evolution.score_samples",
        1,
        1,
        9,
        "How often the scorer is asked about one draft; the median counts.",
        is_global=True,
        derived=_samples,
        default_says="1 at L0 and L1, 3 from L2",
    ),
    Setting(
        "general.evolution.control_run",
        "boolean",
        True,
        "Answer the test message with the unchanged prompts as well, so that a score can be compared.",
        is_global=True,
    ),
    Setting(
        "general.evolution.four_eyes",
        "boolean",
        False,
        "Whoever asked for a run, or for another try with a hint of their own, can't approve it; a run that nobody "
        "asked for by name can't be approved by anyone.",
        is_global=True,
    ),
    _integer(
        "general.evolution.scenarios_per_apply",
        5,
        0,
        50,
        "Kept scenarios that a regression run replays beside those of the applied runs.",
        is_global=True,
    ),
    Setting(
        "general.evolution.triggers.pre_compact",
        "boolean",
        True,
        "From L1, compacting a root session's history starts a run.",
        is_global=True,
    ),
    Setting(
        "general.evolution.locked",
        "list",
        [],
        "Patterns of prompt files that no draft may change, relative to .halo/, for example agents/legal/*.",
        pattern=_NON_EMPTY,
        pattern_says="each a path pattern",
    ),
)

_OTHERS = (
    Setting(
        "general.language",
        "text",
        "en-US",
        "The language of drafts, notes and scores.",
        pattern=_LANGUAGE,
        pattern_says="a BCP 47 tag such as en-US or de",
    ),
    _integer("general.session.max_queue_size", 256, 1, 10_000, "Messages that may wait for one session."),
    _integer(
        "general.session.max_concurrent",
        32,
        1,
        1024,
        "Sessions that one web process works at the same time; further conversations wait in the order in which "
        "they came. Sub-sessions of one that is at work count and never wait. In force after at most 15 seconds.",
        is_global=True,
    ),
    _integer("general.session.max_nesting_depth", 16, 1, 64, "How deep sub-sessions may be nested."),
    _integer("general.session.max_model_calls", 200, 1, 10_000, "Model calls in one turn."),
    Setting(
        "general.session.fsync",
        "choice",
        "turn",
        "When session logs are forced to disk: once a turn, with every write, or never.",
        choices=("turn", "always", "never"),
        is_global=True,
    ),
    _integer(
        "general.cron.max_concurrent", 8, 1, 256, "Cron runs that work at the same time.", is_global=True
    ),
    _integer("general.compact.keep_messages", 5, 0, 1000, "Messages that compaction keeps word for word."),
    _integer(
        "general.compact.summarize_timeout_sec",
        300,
        5,
        3600,
        "Time for the summary of a history, in seconds.",
    ),
    _integer("general.limits.shell_timeout_sec", 120, 1, 86_400, "Time for one shell command, in seconds."),
    _integer(
        "general.limits.shell_output_bytes",
        5_242_880,
        1024,
        104_857_600,
        "Output of one shell command that is captured, in bytes.",
    ),
    _integer(
        "general.limits.tool_result_chars",
        8000,
        500,
        1_000_000,
        "Characters of a tool result the model sees.",
    ),
    _integer(
        "general.limits.tool_result_ui_chars",
        65_536,
        500,
        10_000_000,
        "Characters of a tool result that the session log keeps.",
    ),
    _integer("general.limits.web_fetch_bytes", 51_200, 1024, 10_485_760, "Bytes of a fetched page."),
    _integer(
        "general.limits.auto_report_chars",
        8192,
        500,
        1_000_000,
        "Characters of a sub-session's final report.",
    ),
    Setting(
        "general.web_fetch.allow_private",
        "list",
        [],
        "Private hosts or networks that web_fetch may reach, for example wiki.internal or 10.1.0.0/16.",
        pattern=_NETWORK,
        pattern_says="host names or networks",
        is_global=True,
    ),
    Setting(
        "general.sandbox.allow",
        "list",
        [],
        "Further paths that sandboxed commands may read.",
        pattern=r"/.*[^/.].*",
        pattern_says="absolute paths, not the root folder",
        is_global=True,
    ),
    _integer(
        "general.sandbox.memory_mb",
        0,
        0,
        16_777_216,
        "Memory, in MB, that a sandboxed command and all it starts may use; 0: half of the machine's.",
        is_global=True,
    ),
    _integer(
        "general.sandbox.processes",
        2048,
        16,
        4_000_000,
        "Processes and threads that a sandboxed command may have at once.",
        is_global=True,
    ),
    _integer(
        "general.sandbox.file_mb",
        4096,
        1,
        16_777_216,
        "Size, in MB, of the largest file that a sandboxed command may write.",
        is_global=True,
    ),
    Setting(
        "general.observability.endpoint",
        "text",
        "",
        "OTLP/HTTP base URL that traces, metrics and logs are sent to; empty: off.",
        pattern=_URL,
        pattern_says="an http or https URL, or empty",
        is_global=True,
        restart=True,
    ),
    Setting(
        "general.observability.service_name",
        "text",
        "halo",
        "The service name in traces.",
        pattern=_NON_EMPTY,
        pattern_says="not empty",
        is_global=True,
        restart=True,
    ),
    Setting(
        "general.observability.headers",
        "text",
        "",
        "Headers sent to the endpoint, as name=value,name=value.",
        secret=True,
        is_global=True,
        restart=True,
    ),
    Setting(
        "general.observability.capture_content",
        "boolean",
        False,
        "Export the texts of prompts and replies as well.",
        is_global=True,
        restart=True,
    ),
)

_PROVIDER_KEYS = tuple(
    Setting(
        f"{provider}.secrets.api_key",
        "text",
        "",
        f"Key for the provider {provider}; without it {' or '.join(variables)} of the environment is used.",
        secret=True,
        is_global=True,
    )
    for provider, variables in PROVIDER_KEY_VARIABLES.items()
)

SCHEMA: dict[str, Setting] = {
    setting.key: setting
    for setting in sorted((*_EVOLUTION, *_OTHERS), key=lambda setting: setting.key) + list(_PROVIDER_KEYS)
}


class UnknownSettingError(KeyError):
    """Code or a person asked for a key that the schema doesn't hold; ``near`` are the likely ones."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key
        self.near = near_keys(key)

    def __str__(self) -> str:
        hint = f" Did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"There is no setting {shown(self.key)}.{hint}"


def setting_of(key: str) -> Setting:
    """Raises UnknownSettingError."""
    try:
        return SCHEMA[key]
    except KeyError:
        raise UnknownSettingError(key) from None


def near_keys(key: str, *, among: Iterable[str] | None = None) -> list[str]:
    import difflib  # only wanted when somebody mistyped

    return difflib.get_close_matches(key[:200], list(SCHEMA if among is None else among), n=2, cutoff=0.75)
