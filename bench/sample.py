"""The shipped sample with one conversation in it: what the pipeline's figures are measured on."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessions_app.models import Session
    from workspaces.models import Workspace

HINT = "too long: give the answer in at most two sentences"

Place = tuple[str, ...]
"""The options of ``halo chat`` that name a workspace and its agent."""


def set_up() -> None:
    """Django on the web settings, tables, platform files."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_site.settings.web"
    import django

    django.setup()
    from core.paths import halo_home
    from halo_site.first_run import prepare

    prepare(halo_home())


def registered() -> Place:
    """A copy of the sample as a workspace."""
    from core.paths import halo_home
    from halo_site.sample_folder import fresh_copy, read_script
    from workspaces.register import register

    workspace, _ = register(fresh_copy(halo_home()), home=halo_home(), now=datetime.now(UTC))
    return ("--workspace", workspace.path, "--agent", read_script().agent)


def use_model(place: Place, model: dict[str, Any]) -> None:
    from halo_site import sample_folder

    _, folder, _, agent = place
    sample_folder.use_model(Path(folder), agent=agent, model=model)


def conversation() -> Session:
    """A session in which the agent has answered once."""
    from core.db.clock import database_now
    from core.paths import halo_home
    from halo_site.sample_folder import fresh_copy, read_script
    from sessions_app import queue
    from sessions_app.create import create_session
    from sessions_app.engine import Engine
    from workspaces.register import register

    home, script = halo_home(), read_script()
    workspace, _ = register(fresh_copy(home), home=home, now=datetime.now(UTC))
    session = create_session(
        workspace=workspace,
        agent_id=script.agent,
        agent_name=script.agent,
        access_level="full",
        now=database_now(),
    )
    queue.accept(session=session, text=script.messages[0], now=database_now())
    engine = Engine(home=home)
    asyncio.run(engine.work(session.pk))
    engine.close()
    return session


def finished_runs(workspace: Workspace, count: int) -> None:
    """Rows of runs as a long life leaves them."""
    from core.db.clock import database_now
    from core.ids import new_row_id
    from evolution.models import EvolutionRun

    now = database_now()
    EvolutionRun.objects.bulk_create(
        (
            EvolutionRun(
                id=new_row_id(),
                workspace=workspace,
                source_session_id=f"session-{number % 1000}",
                agent_id="guide",
                trigger_kind="note",
                source_access="full",
                status="rejected",
                attempts=1,
                created_at=now,
                finished_at=now,
            )
            for number in range(count)
        ),
        batch_size=500,
    )
