"""Tools run in threads, also in a process that was forked from one whose tools ran before."""

from __future__ import annotations

import os

from agents.tool_run import _threads


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert _threads().submit(os.getpid).result(timeout=30) == os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if _threads().submit(os.getpid).result(timeout=30) == os.getpid() else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
