"""What a child runs in tests instead of an agent: the brief is a JSON script of what to do.

Tests hand this module's name to ``zygote.start``; no environment or setting leads here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from evolution import wire
from evolution.environment import Keys
from evolution.phases.context import ChildSpec


def run(spec: ChildSpec, *, keys: Keys) -> wire.Answer:
    script: dict[str, Any] = json.loads(sys.stdin.read())
    if script.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "touch" in script:
        Path(script["touch"]).write_text(str(os.getpid()))
    if "print" in script:
        sys.stdout.write(script["print"] + "\n")
    for _ in range(script.get("beats", 0)):
        sys.stdout.write("still here\n")
        time.sleep(script["beat_sec"])
    if script.get("hang"):
        while True:
            signal.pause()
    if "die" in script:
        os.kill(os.getpid(), script["die"])
    if script.get("raise"):
        raise RuntimeError(script["raise"])
    text = Path("/proc/self/environ").read_text() + repr(dict(os.environ)) if script.get("environ") else ""
    spent = tuple(script.get("spent", (0, 0)))
    return wire.Answer(script.get("exit", 0), text or script.get("say", ""), script.get("error", ""), spent)
