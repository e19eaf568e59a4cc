"""A real PostgreSQL server for one test run: own folder, own port, gone with the run.

The server refuses to run as root; a user namespace in which we are user 1000 needs no account on the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Processes are killed here, machines are not.
SETTINGS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=60")


def postgres_folder() -> Path | None:
    """The folder that holds ``initdb`` and ``postgres``: the newest of Debian's, else the path's."""
    installed = sorted(
        (folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()),
        key=lambda folder: int(folder.parent.name) if folder.parent.name.isdigit() else 0,
    )
    if installed:
        return installed[-1]
    program = shutil.which("initdb")
    return Path(program).parent if program else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Start a server on data below ``folder``; yields its ``DATABASE_URL`` (database ``postgres``)."""
    programs = postgres_folder()
    if programs is None:
        raise RuntimeError("PostgreSQL is missing; it is installed by: sudo apt-get install postgresql")
    unprivileged = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    data, sockets, port = folder / "data", folder / "sockets", free_port()
    sockets.mkdir(parents=True)
    with (folder / "initdb.log").open("wb") as log:
        options = ["-U", "halo", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(
            [*unprivileged, str(programs / "initdb"), "-D", str(data), *options],
            check=True,
            stdout=log,
            stderr=log,
        )
    with (folder / "server.log").open("wb") as log:
        # The death of the test run takes the server along: setpriv has the kernel send it SIGQUIT.
        start = [*unprivileged, "setpriv", "--pdeathsig", "QUIT", "--", str(programs / "postgres")]
        options = f"-h 127.0.0.1 -p {port} {' '.join(f'-c {each}' for each in SETTINGS)}".split()
        server = subprocess.Popen(
            [*start, "-D", str(data), "-k", str(sockets), *options], stdout=log, stderr=log
        )
    try:
        _wait_until_ready(programs=programs, port=port, server=server, log=folder / "server.log")
        yield f"postgres://halo@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # SIGTERM would wait for clients to leave
        server.wait(timeout=30)


def _wait_until_ready(*, programs: Path, port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        answer = subprocess.run(
            [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "halo"],
            check=False,
        )
        if answer.returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}")
