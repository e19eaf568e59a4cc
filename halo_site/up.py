"""``halo up``: prepare the home, start web and cluster under one supervisor, end them cleanly."""

from __future__ import annotations

import ipaddress
import os
import signal
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.core.checks import run_checks
from django.db import DatabaseError, connection

from core import clock
from core.paths import halo_home
from evolution.at_work import wrappers_at_work
from evolution.tasks import ensure_schedules, last_tick
from halo_site.first_run import ensure_admin, prepare
from halo_site.supervisor import Child, StartFailed, Supervisor, answers, halo


@dataclass(frozen=True, slots=True)
class Options:
    host: str
    port: int
    with_cluster: bool
    open_browser: bool


DEFAULTS = Options(host="127.0.0.1", port=8000, with_cluster=True, open_browser=False)


def up(options: Options, *, say: Callable[[str], None]) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    if not is_loopback(options.host) and not os.environ.get("ALLOWED_HOSTS"):
        say(
            f"Listening on {options.host} needs ALLOWED_HOSTS, the names people will type: "
            "ALLOWED_HOSTS=halo.example.org halo up --host 0.0.0.0"
        )
        return 2
    home = halo_home()
    prepare(home)
    for message in run_checks(include_deployment_checks=False):
        say(str(message))
    if options.with_cluster:
        ensure_schedules()
    supervisor = _supervisor(options, say=say)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.stop())
    try:
        port = supervisor.start_web()
    except StartFailed as failed:
        say(str(failed))
        supervisor.end()
        return 1
    address = f"http://{_shown(options.host)}:{port}/"
    say(f"Halo is at {address}  (home {home.root}; Ctrl-C ends it)")
    admin = ensure_admin()
    if admin is not None:
        say(f"First administrator: {admin.username}, password {admin.password}  (shown only now)")
    if not options.with_cluster:
        say("No cluster: the web process ticks alone, every 5 s.")
    if options.open_browser:
        webbrowser.open(address)
    supervisor.run()
    for wrapper in wrappers_at_work():
        say(f"{wrapper.name} works on by itself (pid {wrapper.pid}, {wrapper.phase or wrapper.status}).")
    say("Halo has ended.")
    return 0


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _supervisor(options: Options, *, say: Callable[[str], None]) -> Supervisor:
    web = halo("web", "--host", options.host, "--port", str(options.port))
    return Supervisor(
        web=Child(name="The web process", command=web),
        cluster=Child(name="The cluster", command=halo("qcluster")) if options.with_cluster else None,
        say=say,
        now=clock.now,
        last_cluster_tick=_cluster_tick,
        web_answers=lambda port: answers(_reached_at(options.host), port),
    )


def _reached_at(host: str) -> str:
    """Where this machine itself finds what listens at ``host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host).strip("[]")  # noqa: S104 - nothing binds here


def _cluster_tick() -> datetime | None:
    """The cluster's last tick; no connection is held over the minutes between two looks."""
    try:
        return last_tick()
    except DatabaseError:
        return clock.now()  # a database that is away is no reason to replace a cluster
    finally:
        connection.close()
