"""What is missing or wrong on this machine, each with the line that mends it."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents.sandbox import why_unavailable
from core.db.push import layer_answers
from core.faults import Fault
from core.paths import HaloHome
from workspaces.check import check_machine, check_workspace
from workspaces.models import Workspace

State = Literal["ok", "warning", "fault"]

_ALLOW_NAMESPACES = (
    "Allow bwrap user namespaces (Ubuntu: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0)."
)

MINIMUM_PYTHON = (3, 11)
_UTIL_LINUX = {"setsid": "no run or apply can be started", "setpriv": "halo up can't start"}


@dataclass(frozen=True, slots=True)
class Finding:
    """``mend`` is a command where there is one, else a sentence; empty when all is well."""

    name: str
    state: State
    text: str
    mend: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(home: HaloHome) -> list[Finding]:
    """Every check, in the order a person would mend things. Never raises for what it finds."""
    findings = [_python(), _system(), _sandbox(), _ripgrep()]
    findings += [_of_util_linux(program, without) for program, without in _UTIL_LINUX.items()]
    findings += _home(home)
    database = _database()
    findings.append(database)
    findings += _layer()
    findings += _files(home, with_workspaces=database.state == "ok")
    return findings


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info >= MINIMUM_PYTHON:
        return Finding("python", "ok", version)
    return Finding("python", "fault", f"{version} is too old", "Install Python 3.11 or newer.")


def _system() -> Finding:
    if sys.platform == "linux" and Path("/proc/self/stat").exists():
        return Finding("system", "ok", f"Linux {platform.release()}")
    if sys.platform == "linux":
        return Finding("system", "fault", "/proc is not mounted", "mount -t proc proc /proc")
    mend = "Use Linux for agents that run commands below full access."
    return Finding("system", "warning", f"{platform.system()}: sandboxed commands are refused here", mend)


def _sandbox() -> Finding:
    reason = why_unavailable()
    if not reason:
        return Finding("sandbox", "ok", "bubblewrap works")
    missing = shutil.which("bwrap") is None
    mend = "sudo apt-get install bubblewrap" if missing else _ALLOW_NAMESPACES
    return Finding(
        "sandbox", "warning", f"{reason} shell_exec and web_fetch are refused below full access.", mend
    )


def _ripgrep() -> Finding:
    program = shutil.which("rg")
    if program is not None:
        return Finding("ripgrep", "ok", program)
    return Finding(
        "ripgrep", "ok", "missing; grep works without it, more slowly", "sudo apt-get install ripgrep"
    )


def _of_util_linux(name: str, without: str) -> Finding:
    program = shutil.which(name)
    if program is not None:
        return Finding(name, "ok", program)
    return Finding(name, "fault", f"{name} is missing; {without}", "sudo apt-get install util-linux")


def _home(home: HaloHome) -> Iterator[Finding]:
    if not home.root.is_dir():
        yield Finding("home", "fault", f"{home.root} doesn't exist", "halo up   (or: halo migrate)")
        return
    if not os.access(home.root, os.W_OK | os.X_OK):
        mend = f"sudo chown -R $USER {home.root}"
        yield Finding("home", "fault", f"{home.root} can't be written by this user", mend)
        return
    loose = [
        *_loose(home.secrets, 0o700),
        *_loose(home.settings_file, 0o600),
        *_loose(home.secret_key_file, 0o600),
    ]
    yield from loose
    if not loose:
        yield Finding("home", "ok", str(home.root))


def _loose(path: Path, mode: int) -> Iterator[Finding]:
    """A secret that others than its owner may open."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        yield Finding("home", "fault", f"{path} can't be looked at: {error.strerror}", f"sudo ls -la {path}")
        return
    found = stat.S_IMODE(status.st_mode)
    if found & 0o077:
        yield Finding("home", "fault", f"{path} is open to others (mode {found:o})", f"chmod {mode:o} {path}")
    if status.st_uid != os.geteuid():
        yield Finding("home", "fault", f"{path} belongs to another user", f"sudo chown $USER {path}")


def _database() -> Finding:
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (DatabaseError, ImproperlyConfigured, OSError) as error:
        first_line = str(error).strip().splitlines()[:1]
        mend = "Look at DATABASE_URL, and that the server runs."
        return Finding("database", "fault", f"can't be reached: {''.join(first_line)}", mend)
    if pending:
        return Finding("database", "fault", f"{len(pending)} migrations are missing", "halo migrate")
    return Finding("database", "ok", connection.vendor)


def _layer() -> Iterator[Finding]:
    if not settings.REDIS_URL:
        return
    if layer_answers():
        yield Finding("redis", "ok", "answers")
    else:
        mend = "Look at REDIS_URL, and that the server runs."
        yield Finding("redis", "warning", "doesn't answer; open pages hear of everything 0.2 s later", mend)


def _files(home: HaloHome, *, with_workspaces: bool) -> Iterator[Finding]:
    """Faults in settings, agents and skills, the machine's and every workspace's."""
    seen: set[Fault] = set()
    checks: list[Callable[[], list[Fault]]] = [partial(check_machine, home)]
    if with_workspaces:
        rows = Workspace.objects.order_by("path")
        checks += [partial(check_workspace, row.paths, home=home) for row in rows]
    for check in checks:
        for fault in check():
            if fault not in seen:
                seen.add(fault)
                yield _finding(fault)
    if not seen:
        yield Finding("files", "ok", "settings, agents and skills are in order")


def _finding(fault: Fault) -> Finding:
    place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
    key = f" {fault.key}:" if fault.key else ""
    return Finding("files", fault.severity, f"{place}:{key} found {fault.found}", f"Wanted: {fault.wanted}.")
