"""How the demo speaks: with colour and a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from core.texts import for_terminal
from evolution.follow import Step

_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}


class Stage:
    """Everything goes to standard output; only on a terminal is it wrapped and coloured."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def heading(self, text: str) -> None:
        self._show(Text(f"\n{text}", style="bold"), indent=0)

    def note(self, text: str) -> None:
        self._show(Text(for_terminal(text), style="dim"), indent=2)

    def line(self, text: str) -> None:
        self._show(Text(for_terminal(text)), indent=2)

    def said(self, who: str, text: str) -> None:
        self._show(Text.assemble((f"{who:<8}", "bold cyan"), for_terminal(text)), indent=2)

    def block(self, title: str, text: str) -> None:
        self._show(Text(f"\n{title}", style="underline"), indent=2)
        if text:
            self._show(Text(for_terminal(text)), indent=4)

    def diff(self, text: str) -> None:
        shown = Text()
        for line in text.split("\n"):
            style = next((style for start, style in _DIFF_STYLES.items() if line.startswith(start)), "")
            shown.append(for_terminal(line) + "\n", style=style)
        shown.rstrip()
        self._show(shown, indent=4)

    def _show(self, text: Text, *, indent: int) -> None:
        if self._console.is_terminal:
            self._console.print(Padding(text, (0, 0, 0, indent)))
            return
        margin = " " * indent
        self._console.file.write(
            "\n".join((margin + line).rstrip() for line in text.plain.split("\n")) + "\n"
        )
        self._console.file.flush()

    def follow(self, steps: Iterable[Step]) -> None:
        """One line a step; on a terminal the current one turns meanwhile."""
        if not self._console.is_terminal:
            for step in steps:
                self.note(_words(step))
            return
        with self._console.status("") as status:
            for step in steps:
                self.note(_words(step))
                status.update(_words(step))


def _words(step: Step) -> str:
    count = f" {step.done} of {step.total}" if step.total else ""
    return f"{step.status}{f': {step.phase}' if step.phase else ''}{count}"
