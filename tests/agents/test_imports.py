"""What importing a turn's modules costs: no Django ever, the model library only when a turn runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = ["agents.history", "agents.views", "agents.turn", "agents.loop", "agents.tools.registry"]
TOOLS = ["agents.tools.shell_exec", "agents.tools.grep", "agents.tools.file_edit", "agents.tools.listing"]


def loaded_by(modules: list[str]) -> set[str]:
    program = f"import sys, {', '.join(modules)}; print(' '.join(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in found.stdout.split()}


@pytest.mark.parametrize("modules", [LIGHT, TOOLS])
def test_no_heavy_library_comes_along(modules: list[str]) -> None:
    assert not loaded_by(modules) & {"django", "pydantic", "pydantic_ai", "openai", "httpx"}
