"""Halo's commands with one line each, for ``halo --help`` without importing Django (0.4 s would go there)."""

from __future__ import annotations

COMMANDS = {
    "demo": "watch a conversation become a reviewed, published prompt change",
    "up": "run Halo: web and background work, on this machine",
    "chat": "talk to an agent in the terminal",
    "evo": "evolution: list, show, enqueue, approve, reject, retry, cancel, rollback ...",
    "session": "list, show, rename, import, export, archive and delete conversations",
    "workspace": "add, list, check and move workspaces",
    "settings": "read, change and check settings",
    "token": "make, list and revoke tokens of the REST API",
    "doctor": "what is missing or wrong here, with the line that mends it",
}

INTERNAL = {
    "evo_wrapper": "works one run or apply; started by the ticker",
    "web": "the web process alone; started by `halo up`",
}


def help_text() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{line}" for name, line in COMMANDS.items()]
    return "\n".join(
        [
            "usage: halo COMMAND [options]      halo COMMAND --help tells more",
            "",
            *lines,
            "",
            "Django's own commands work as well: migrate, createsuperuser, changepassword, shell ...",
            "HALO_HOME (default ~/.halo) holds the database, settings and machine-wide prompts.",
        ]
    )
