"""``docs/settings.md``, written from the schema: ``python -m core.settings_docs`` prints it."""

from __future__ import annotations

import sys
from typing import Any

from core.setting import Setting
from core.settings_schema import PROVIDER_KEY_VARIABLES, SCHEMA

_INTRODUCTION = """\
# Settings

*Written from the schema by `make docs`; change `core/settings_schema.py`, not this page.*

| file | holds |
|---|---|
| `$HALO_HOME/secrets/settings.yaml` | the machine's settings and every key (mode 0600) |
| `<workspace>/.halo/settings.yaml` | what differs in one workspace |

The workspace's file counts first, then the machine's, then the default. A *global* setting is read from the
machine's file alone. The files are plain YAML, nested at the dots:

```yaml
general:
  language: de
  evolution:
    level: L1
    locked: [agents/legal/*, INSTRUCTIONS.md]
openai:
  secrets:
    api_key: <<OPENAI_API_KEY>>
```

- `halo settings get` shows every value and where it comes from, `halo settings set KEY VALUE` changes one,
  `--unset` goes back to the default, `-w WORKSPACE` works on a workspace's own file. Without a value,
  `halo settings set` asks for it: the way to enter a key without leaving it in the shell's history.
- `<<NAME>>` as a whole value is replaced by the environment variable NAME. Unset, the text stays as it is and
  `halo settings check` names it. A workspace's file can't name variables that hold keys or passwords: it comes
  with a repository, and its values are read by agents.
- A change counts from the next message, run or tick on; only what is marked *restart* waits for the next start.
- A value out of range or of the wrong type is refused when it is saved. In a file edited by hand the next source
  counts instead, and `halo settings check`, `halo doctor` and the admin show file, line, key and what is wanted.
- Unknown keys are reported and kept, so that the file of a newer or older version survives. Saving keeps every
  key; comments and layout are lost. A file that can't be read, or gives a key twice with different values, is not
  saved over.
- A secret is never shown again, not in a log, and not in the environment of an agent's commands.
"""


def render() -> str:
    plain = [setting for setting in SCHEMA.values() if not setting.secret]
    secrets = [setting for setting in SCHEMA.values() if setting.secret]
    lines = [_INTRODUCTION]
    for group in dict.fromkeys(_group(setting) for setting in plain):
        lines += [f"## `{group}`", "", "| key | default | | |", "|---|---|---|---|"]
        lines += [_row(setting) for setting in plain if _group(setting) == group]
        lines.append("")
    lines += ["## Secrets", "", "| key | from the environment instead |", "|---|---|"]
    for setting in secrets:
        variables = PROVIDER_KEY_VARIABLES.get(setting.key.split(".")[0], ())
        lines.append(f"| `{setting.key}` | {', '.join(f'`{name}`' for name in variables)} |")
    return "\n".join(lines) + "\n"


def _group(setting: Setting) -> str:
    """``general.evolution`` for ``general.evolution.level``; a key right below ``general`` stands there."""
    parts = setting.key.split(".")
    return ".".join(parts[:2] if len(parts) > 2 else parts[:1])


def _row(setting: Setting) -> str:
    marks = [name for name, holds in (("global", setting.is_global), ("restart", setting.restart)) if holds]
    default = setting.default_says or _spelled(setting.default)
    notes = "; ".join([setting.wanted, *marks])
    return f"| `{setting.key}` | {default} | {notes} | {setting.help} |".replace("*", "\\*")


def _spelled(value: Any) -> str:
    if value in ("", []) and not isinstance(value, bool):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    sys.stdout.write(render())
