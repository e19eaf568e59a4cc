"""Furnishes a home with the shipped sample, by the very parts that do it every day.

A process of its own, because the tests' own database is not the one that the browser's server reads::

    python -m tests.browser.furnish FOLDER <<< '[{"name": "shop", "runs": [{"hint": "too long"}]}]'

Every workspace is a copy of the sample. A run stays ``pending`` unless its ``to`` says ``review`` or ``applied``
(``merge_hint``: the reviewer's); ``edit`` is text that a person adds to the changed file afterwards. ``open``: also
a session in which nothing was said. Prints the ids:
``{"shop": {"path", "workspace", "session", "runs": [{"run", "apply", "session"}]}}``.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import django

PASSWORD = "a-long-enough-one"
PEOPLE = {"rita": "Operators", "vera": "Reviewers"}
AT_ONCE = 4


def main(folder: Path, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    from core.paths import halo_home
    from halo_site.first_run import prepare

    home = halo_home()
    prepare(home)
    (home.root / "settings.yaml").write_text(
        f"general:\n  evolution:\n    max_concurrent_run: {AT_ONCE}\n    max_concurrent_apply: {AT_ONCE}\n"
    )
    _people()
    return {workspace["name"]: _furnish(folder, workspace) for workspace in wanted}


def _people() -> None:
    from django.contrib.auth.models import Group, User

    if User.objects.exists():
        return
    User.objects.create_superuser("admin", password=PASSWORD)
    for name, group in PEOPLE.items():
        User.objects.create_user(name, password=PASSWORD).groups.add(Group.objects.get(name=group))


def _furnish(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    from core.db.clock import database_now
    from core.paths import halo_home
    from halo_site.sample_folder import SAMPLE
    from workspaces.register import register

    path = folder / wanted["name"]
    shutil.copytree(SAMPLE / "workspace", path)
    workspace, _ = register(path, home=halo_home(), now=database_now())
    made = [_run(workspace, run) for run in wanted["runs"]]
    for ids, run in zip(made, wanted["runs"], strict=True):
        if run.get("to") == "review":
            _reviewable(ids["run"])
    opened = _conversation(workspace, []).pk if wanted.get("open") else ""
    return {"path": str(path), "workspace": workspace.pk, "runs": made, "session": opened}


def _run(workspace: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    from django.contrib.auth.models import User

    from core.db.clock import database_now
    from evolution.approve import approve, seen_now
    from evolution.follow import follow
    from evolution.models import EvolutionRun
    from evolution.states import ApplyStatus
    from halo_site.sample_folder import read_script
    from sessions_app import commands

    session = _conversation(workspace, wanted.get("messages", read_script().messages))
    told = commands.run(f"/evo {wanted['hint']}", session=session, now=database_now())
    assert told.ok, told.text
    run = EvolutionRun.objects.get(source_session_id=session.pk)
    rita = User.objects.get(username="rita")
    EvolutionRun.objects.filter(pk=run.pk).update(requested_by=rita)
    made = {"run": run.pk, "apply": None, "session": session.pk}
    if wanted.get("to") != "applied":
        return made
    seen = seen_now(_reviewable(run.pk))
    apply = approve(runs=[seen], user=rita, hint=wanted.get("merge_hint", ""), now=database_now())
    list(follow(apply))
    assert apply.status == ApplyStatus.APPLIED, (apply.status, apply.failure_reason)
    if "edit" in wanted:
        live = Path(workspace.path) / ".halo/agents/support/AGENT.md"
        live.write_text(live.read_text() + wanted["edit"])
    return {**made, "apply": apply.pk}


def _reviewable(run_id: str) -> Any:
    """The run, once its draft waits for a person."""
    from evolution.follow import follow
    from evolution.models import EvolutionRun
    from evolution.states import RunStatus

    run = EvolutionRun.objects.get(pk=run_id)
    list(follow(run))
    assert run.status == RunStatus.AWAITING_REVIEW, (run.status, run.failure_reason, run.skip_reason)
    return run


def _conversation(workspace: Any, messages: list[str]) -> Any:
    from core.db.clock import database_now
    from core.paths import halo_home
    from sessions_app import queue
    from sessions_app.create import create_session
    from sessions_app.engine import Engine

    session = create_session(
        workspace=workspace,
        agent_id="support",
        agent_name="Support",
        access_level="full",
        title=messages[0] if messages else "",
        now=database_now(),
    )
    engine = Engine(home=halo_home())
    try:
        for text in messages:
            queue.accept(session=session, text=text, now=database_now())
            asyncio.run(engine.work(session.pk))
    finally:
        engine.close()
    return session


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), json.loads(sys.stdin.read()))))
