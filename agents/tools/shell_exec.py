"""Running a shell command."""

from __future__ import annotations

from agents import rm_guard, shell
from agents.tools.context import ToolContext, ToolError

LONGEST_SEC = 3_600
MOST_BYTES = 131_071
"""What the kernel takes as one argument of a program, here bash's."""


def shell_exec(context: ToolContext, command: str, timeout: int = 0) -> str:
    """Run a command in the working directory with bash and return its output and exit code.

    Standard input is closed. Redirect the output of what is to go on in the background.

    Args:
        command: The command line.
        timeout: Seconds after which the command and all it started are killed; 0 means the usual limit.
    """
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("A command can't contain a NUL byte.")
    command = command.encode("utf-8", "replace").decode()
    if len(command.encode()) > MOST_BYTES:
        raise ToolError(
            f"A command has {MOST_BYTES:,} bytes at most; write a long one into a script with file_write."
        )
    if not 0 <= timeout <= LONGEST_SEC:
        raise ToolError(f"timeout must lie between 0 and {LONGEST_SEC} seconds.")
    target = rm_guard.protected_target(command, folder=context.view.folder, root=context.view.root)
    if target is not None:
        raise ToolError(
            f"Refused: this command would delete {target} recursively. Delete what is meant by name."
        )
    seconds = timeout or context.limits.shell_timeout_sec
    outcome = shell.run(context, [shell.interpreter(), "-c", command], timeout=seconds)
    lines = [outcome.text] if outcome.text else []
    if outcome.dropped:
        lines.append(
            f"[{outcome.dropped:,} bytes in the middle were dropped; redirect long output to a file]"
        )
    if outcome.ended_by == "timeout":
        lines.append(f"[killed after {seconds} s, with all it had started]")
    elif outcome.ended_by == "abort":
        lines.append("[killed: the turn was stopped; it may have done part of its work]")
    elif outcome.ended_by == "excess":
        lines.append(f"[killed, with all it had started: {outcome.excess}]")
    elif outcome.goes_on:
        lines.append("[a background process still holds the output]")
    lines.append(f"[exit code {outcome.exit_code}]")
    return "\n".join(lines)
