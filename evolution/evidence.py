"""What a wrapper wrote and no agent may change, by hash; kept in the wrapper's memory alone. No Django."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core import atomic, hashes


@dataclass(slots=True)
class Evidence:
    """A ledger on disk could be rewritten together with what it vouches for; this one can't."""

    _files: dict[Path, str] = field(default_factory=dict)
    _trees: dict[Path, dict[str, str]] = field(default_factory=dict)

    def write_text(self, path: Path, text: str) -> None:
        """Write ``path`` durably and vouch for it."""
        data = text.encode()
        atomic.write_bytes(path, data)
        self._files[path] = hashes.of_bytes(data)

    def vouch(self, path: Path) -> None:
        """From now on ``path`` must stay as it is now."""
        self._files[path] = hashes.of_file(path)

    def vouch_tree(self, root: Path) -> dict[str, str]:
        """From now on the files below ``root`` must stay as they are, none more and none fewer."""
        self._trees[root] = hashes.of_tree(root)
        return self._trees[root]

    def changed(self) -> list[Path]:
        """Every vouched-for file that is gone, new or different."""
        found = [path for path, known in self._files.items() if _hash(path) != known]
        for root, known in self._trees.items():
            now = hashes.of_tree(root)
            found += [
                root / rel for rel in sorted(known.keys() | now.keys()) if known.get(rel) != now.get(rel)
            ]
        return found


def _hash(path: Path) -> str | None:
    try:
        return None if path.is_symlink() else hashes.of_file(path)
    except OSError:
        return None
