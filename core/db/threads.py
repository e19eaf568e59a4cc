"""Threads for whole pieces of database and file work, so that an event loop waits for none of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class DatabaseThreads:
    """``count`` at most, begun when they are first needed; ``name`` is what their names begin with."""

    def __init__(self, *, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix=name)

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """One whole piece of work, which ends by itself also when the caller is cancelled.

        No connection is kept over it.
        """

        def closed_afterwards() -> Result:
            try:
                return work(*args, **kwargs)
            finally:
                connections.close_all()

        return await asyncio.get_running_loop().run_in_executor(self._pool, closed_afterwards)

    def close(self) -> None:
        """Wait for what is being done; after this nothing is taken."""
        self._pool.shutdown(wait=True)
