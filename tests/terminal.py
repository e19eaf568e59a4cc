"""A real terminal for a command in tests: what it writes is waited for, what is typed goes through the line
discipline, so that Ctrl-C is a signal as it is for a person."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE_SEC = 110.0
CTRL_C, CTRL_D = "\x03", "\x04"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """``halo`` with ``arguments`` on a pty of its own; leaves nothing behind when it is closed."""

    def __init__(self, *arguments: str, environment: Mapping[str, str]) -> None:
        self._master, slave = os.openpty()
        inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "halo_site", *arguments],
            env={**inherited, "TERM": "xterm", "COLUMNS": "200", **environment},
            cwd=ROOT,
            preexec_fn=lambda: os.login_tty(slave),
        )
        os.close(slave)
        self.seen = ""
        self._read_to = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, text: str) -> str:
        """Wait until ``text`` is written behind what was expected before; what stood in front of it."""
        deadline = time.monotonic() + PATIENCE_SEC
        while (found := self.seen.find(text, self._read_to)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was never written. The terminal shows:\n{self.seen}")
        before = self.seen[self._read_to : found]
        self._read_to = found + len(text)
        return before

    def exit_code(self) -> int:
        deadline = time.monotonic() + PATIENCE_SEC
        while self._read(deadline):
            continue
        return self._process.wait(timeout=PATIENCE_SEC)

    def _read(self, deadline: float) -> bool:
        """More output; False at its end."""
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux's way of saying that the other side is closed
            return False
        self.seen += _ESCAPES.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
        return bool(data)


def piped(
    arguments: Sequence[str], *, text: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The same without a terminal: input and output are pipes."""
    inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(
        [sys.executable, "-m", "halo_site", *arguments],
        input=text,
        env={**inherited, **environment},
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
