"""What a person at the terminal sees of a turn while it runs. Nothing here writes anywhere else."""

from __future__ import annotations

import sys
from typing import Protocol

from agents import events
from core.texts import encodable, for_terminal

_ARGUMENT_CHARS = 100


class View(Protocol):
    def watch(self, event: events.AgentEvent) -> None: ...

    def reply(self, text: str) -> None:
        """The final text of a turn, when its deltas weren't shown; the answer of a command."""

    def note(self, text: str) -> None:
        """A line that isn't part of the reply."""


class PlainView:
    """Standard output isn't a terminal: the final reply alone goes there, notes go to standard error."""

    def watch(self, event: events.AgentEvent) -> None:
        if isinstance(event, events.TurnError | events.SystemNote):
            self.note(event.text)

    def reply(self, text: str) -> None:
        text = encodable(text) if not sys.stdout.isatty() else for_terminal(text)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(for_terminal(text) + "\n")
        sys.stderr.flush()


class RichView:
    """A terminal: the reply as it streams, tool calls and notes as dim lines."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=True)
        self._streamed = False
        self._in_line = False

    def watch(self, event: events.AgentEvent) -> None:
        match event:
            case events.AgentStart():
                self._streamed = False
            case events.StreamDelta(text=text):
                self._streamed = True
                self._write(text)
            case events.ToolCall():
                self.note(f"· {event.tool} {_shown(event.arguments)}")
            case events.ToolResult(is_error=True):
                self.note(f"  {event.tool}: {event.text.splitlines()[0] if event.text else 'failed'}")
            case events.CallDiscarded(reason=reason):
                self.note(f"(what streamed of this call is discarded: {reason})")
            case events.SystemNote(text=text):
                self.note(text)
            case events.TurnError(text=text):
                self._end_line()
                self._console.print(for_terminal(text), style="red", markup=False)
            case events.Complete():
                self._end_line()

    def reply(self, text: str) -> None:
        if not self._streamed:
            self._write(text)
            self._end_line()
        self._streamed = False

    def note(self, text: str) -> None:
        self._end_line()
        self._console.print(for_terminal(text), style="dim", markup=False)

    def _write(self, text: str) -> None:
        shown = for_terminal(text)
        self._console.print(shown, end="", markup=False)
        self._in_line = not shown.endswith("\n")

    def _end_line(self) -> None:
        if self._in_line:
            self._console.print()
        self._in_line = False


def _shown(arguments: dict[str, object]) -> str:
    text = " ".join(f"{name}={value!r}" for name, value in arguments.items())
    return text if len(text) <= _ARGUMENT_CHARS else text[:_ARGUMENT_CHARS] + "…"
