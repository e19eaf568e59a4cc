"""A view as a bubblewrap command line: an allow-list of the host, the mounts, own namespaces, no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from agents import files
from agents.environment import sandbox_environment
from agents.sandbox_limits import limited, memory_bytes
from agents.tools.context import ToolLimits
from agents.view import Mount, View

ETC = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "debian_version",
    "group",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "profile",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
NAMESPACES = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--hostname",
    "sandbox",
)
HOW_TO_GET_IT = "Install bubblewrap (Debian, Ubuntu: apt install bubblewrap) or use a session at level full."


@lru_cache(maxsize=1)
def why_unavailable() -> str:
    """Empty when commands can be sandboxed here; else one sentence for people. Tried once per process."""
    if not sys.platform.startswith("linux"):
        return "Sandboxed commands are supported on Linux only."
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed."
    tried = subprocess.run(
        [program, *NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
        env=sandbox_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode == 0:
        return ""
    return f"bubblewrap does not work here: {tried.stderr.strip().removeprefix('bwrap: ')}"


@lru_cache(maxsize=1)
def _takes_sizes() -> bool:
    """Whether this bubblewrap (0.7 or newer) can bound a tmpfs; an older one leaves it half of the memory."""
    program = shutil.which("bwrap") or "bwrap"
    told = subprocess.run(
        [program, "--help"],
        env=sandbox_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return "--size" in told.stdout + told.stderr


def wrapped(view: View, arguments: list[str], *, folder: Path, limits: ToolLimits) -> list[str]:
    """``arguments`` as they run inside ``view``; the caller has asked ``why_unavailable``."""
    program = shutil.which("bwrap") or "bwrap"
    covers = _covers(view)
    options = [
        *NAMESPACES,
        *_system(memory_bytes(limits)),
        *_mounts(view, covers),
        *_closed(covers),
        "--chdir",
        str(folder),
    ]
    return limited([program, *options, "--", *_checked_inside(view), *arguments], limits)


def _system(memory: int) -> list[str]:
    """``memory``: what the command may use, in bytes; files in its ``/tmp`` and ``/dev/shm`` are memory too."""
    size = ["--size", str(max(memory // 2, 1))] if _takes_sizes() else []
    options = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        path = Path("/etc") / name
        if path.exists():
            options += ["--ro-bind", str(path.resolve()), str(path)]
    options += ["--proc", "/proc", "--dev", "/dev"]
    for own in ("/dev/shm", "/tmp"):  # noqa: S108 - the sandbox's own
        options += [*size, "--tmpfs", own]
    for prefix in _interpreters():
        options += ["--ro-bind", str(prefix), str(prefix)]
    return options


def _interpreters() -> list[Path]:
    prefixes = sorted({Path(sys.prefix), Path(sys.base_prefix)})
    return [prefix for prefix in prefixes if not prefix.is_relative_to("/usr") and prefix != Path("/")]


def _covers(view: View) -> list[Path]:
    """Where what is hidden would show: in a mount of the view, below ``/usr``, or beside an interpreter."""
    found = [path for path in view.hidden if view.mount_of(path) is not None]
    for root in (Path("/usr"), *_interpreters()):
        real = root.resolve()
        found += [root / path.relative_to(real) for path in view.hidden if path.is_relative_to(real)]
    return [path for path in dict.fromkeys(found) if os.path.lexists(path)]


def _closed(covers: list[Path]) -> list[str]:
    """What bubblewrap makes of memory holds no files of a command: the root, ``/dev``, and the covers."""
    folders = [path for path in covers if path.is_dir()]
    return [part for path in (*folders, Path("/dev"), Path("/")) for part in ("--remount-ro", str(path))]


def _mounts(view: View, covers: list[Path]) -> list[str]:
    """Outer before inner, so that an inner one lies on top; a hidden path is covered at its own depth."""
    found: list[tuple[int, list[str]]] = []
    for mount in view.mounts:
        if _can_be_bound(view, mount):
            option = "--bind" if mount.writable else "--ro-bind"
            found.append((len(mount.path.parts), [option, str(mount.source), str(mount.path)]))
    for path in covers:
        cover = ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
        found.append((len(path.parts), cover))
    found.sort(key=lambda pair: pair[0])
    return [option for _, options in found for option in options]


_CHECK = """
count=$1; shift
while [ $count -gt 0 ]; do
  if [ "$(stat -c %d:%i -- "$1")" != "$2" ]; then
    echo "bwrap: part of the workspace was replaced while the command was started; try again" >&2
    exit 1
  fi
  shift 2; count=$((count - 1))
done
exec "$@"
"""


def _checked_inside(view: View) -> list[str]:
    """A prelude that looks, from inside, whether what was bound is what was meant.

    bubblewrap binds by name. Below a writable folder, a command that runs beside this one could swap the name
    for a symlink to anything of the host between the check here and the mount there.
    """
    expected: list[str] = []
    for mount in view.mounts:
        around = _around(view, mount)
        if around is None or not around.writable or not _can_be_bound(view, mount):
            continue
        with files.walk(view, str(mount.path)) as place:
            if place.descriptor is not None:
                info = os.fstat(place.descriptor)
                expected += [str(mount.path), f"{info.st_dev}:{info.st_ino}"]
    return ["/bin/sh", "-c", _CHECK, "sandbox", str(len(expected) // 2), *expected] if expected else []


def _around(view: View, mount: Mount) -> Mount | None:
    """The mount that ``mount`` lies in."""
    return View(view.root, tuple(o for o in view.mounts if o.path in mount.path.parents)).mount_of(mount.path)


def _can_be_bound(view: View, mount: Mount) -> bool:
    """Whether the source is there itself (a symlink would show its target) and so is the name to cover.

    bubblewrap makes absent names; inside a writable mount that would leave an empty file in the workspace.
    """
    if mount.source.is_symlink() or not mount.source.exists():
        return False
    around = _around(view, mount)
    if around is None or any(hidden in mount.path.parents for hidden in view.hidden):
        return True
    covered = around.source / mount.path.relative_to(around.path)
    return covered.exists() and not covered.is_symlink() and covered.is_dir() == mount.source.is_dir()
