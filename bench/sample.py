"""The shipped sample with one conversation in it: what the pipeline's figures are measured on."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.models import Session

HINT = "too long: give the answer in at most two sentences"


def set_up() -> None:
    """Django on the web settings, tables, platform files."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_site.settings.web"
    import django

    django.setup()
    from core.paths import halo_home
    from halo_site.first_run import prepare

    prepare(halo_home())


def registered() -> tuple[str, ...]:
    """A copy of the sample as a workspace: the options of ``halo chat`` that name it and its agent."""
    from core.paths import halo_home
    from halo_site.sample_folder import fresh_copy, read_script
    from workspaces.register import register

    workspace, _ = register(fresh_copy(halo_home()), home=halo_home(), now=datetime.now(UTC))
    return ("--workspace", workspace.path, "--agent", read_script().agent)


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
