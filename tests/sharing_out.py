"""How tests are shared out among the workers of pytest-xdist."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling


class SharingOut(LoadScopeScheduling):
    """One test after the other to whoever is free; those in a browser in two portions.

    A worker that has tests of the browser needs a server and a Chromium for them, so no third worker starts any.
    Portions go first, largest first.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not file.startswith("tests/browser/"):
            return nodeid
        return "pages" if file.endswith(("/test_pages.py", "/test_without_script.py")) else "ways"
