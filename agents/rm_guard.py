"""A safety catch against ``rm -rf`` of the wrong folder. No boundary: a script deletes what it likes.

Read are the spellings people and models use: quotes, ``--``, ``sudo``, ``cd x && rm -rf .``, ``bash -c``,
command substitution. What can't be known from the text, such as a variable of a loop, passes.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

_WRAPPERS = {"sudo", "doas", "env", "nice", "nohup", "time", "command", "exec", "builtin", "ionice", "stdbuf"}
_WRAPPERS_WITH_VALUE = {
    "sudo": "ugpCThr",
    "nice": "n",
    "ionice": "cnp",
    "env": "uCS",
    "stdbuf": "ioe",
    "doas": "uC",
}
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_KEYWORDS = {"then", "do", "else", "if", "while", "until", "{", "!", "elif"}
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NESTING_AT_MOST = 8
_STEPS_AT_MOST = 1_000
"""Thirty pairs of braces stand for more texts than there is memory."""
_CHARS_AT_MOST = 16_384
"""A few lines that each name the one before twice would make a text of any length."""


def protected_target(command: str, *, folder: Path, root: Path) -> str | None:
    """What a recursive delete in ``command``, run in ``folder``, would hit and must not, if seen."""
    return _Reader(folder, root).read(command, 0)


class _Reader:
    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root
        self._variables = {"HOME": str(Path.home()), "PWD": str(folder)}

    def read(self, command: str, depth: int) -> str | None:
        if depth > _NESTING_AT_MOST:
            return None
        for match in _SUBSTITUTION.finditer(command):
            found = self.read(match[1] or match[2] or "", depth + 1)
            if found:
                return found
        for words in _simple_commands(command):
            found = self._command(words, depth)
            if found:
                return found
        return None

    def _command(self, words: list[str], depth: int) -> str | None:
        words = self._without_prefixes(words)
        if not words:
            return None
        name, arguments = Path(words[0]).name, words[1:]
        if name in ("cd", "pushd"):
            self._change_folder(arguments)
        elif name in _SHELLS and "-c" in [a[:1] + a[-1:] for a in arguments]:
            script = (
                next((n for n, a in enumerate(arguments) if a.startswith("-") and a.endswith("c")), 0) + 1
            )
            return (
                self.read(self._expanded(arguments[script]) or "", depth + 1)
                if script < len(arguments)
                else None
            )
        elif name == "eval":
            return self.read(" ".join(arguments), depth + 1)
        elif name in ("rm", "busybox"):
            return self._remove(arguments[1:] if name == "busybox" and arguments[:1] == ["rm"] else arguments)
        return None

    def _without_prefixes(self, words: list[str]) -> list[str]:
        """The command itself: without keywords, assignments (remembered) and wrappers' options."""
        words = list(words)
        while words:
            assignment = _ASSIGNMENT.fullmatch(words[0])
            name = Path(words[0]).name
            if words[0] in _KEYWORDS:
                words.pop(0)
            elif assignment:
                self._variables[assignment[1]] = self._expanded(assignment[2]) or ""
                words.pop(0)
            elif name in _WRAPPERS:
                words.pop(0)
                with_value = _WRAPPERS_WITH_VALUE.get(name, "")
                while words and words[0].startswith("-"):
                    option = words.pop(0)
                    if len(option) == 2 and option[1] in with_value and words:
                        words.pop(0)
            else:
                break
        return words

    def _change_folder(self, arguments: list[str]) -> None:
        targets = [argument for argument in arguments if not argument.startswith("-")]
        target = self._path(targets[0] if targets else "~")
        if target is not None:
            self._folder = target
            self._variables["PWD"] = str(target)

    def _remove(self, arguments: list[str]) -> str | None:
        recursive, targets, only_targets = False, [], False
        for argument in arguments:
            if only_targets or not argument.startswith("-") or argument == "-":
                targets.append(argument)
            elif argument == "--":
                only_targets = True
            elif argument.startswith("--"):
                recursive = recursive or (len(argument) > 2 and "--recursive".startswith(argument))
            else:
                recursive = recursive or "r" in argument or "R" in argument
        if not recursive:
            return None
        for target in targets:
            for one in _without_braces(target):
                path = self._path(one)
                if path is not None and self._is_protected(path):
                    return str(path)
        return None

    def _path(self, text: str) -> Path | None:
        expanded = self._expanded(text)
        if not expanded:
            return None
        if expanded == "~" or expanded.startswith("~/"):
            expanded = str(Path.home()) + expanded[1:]
        path = Path("/" + os.path.normpath(self._folder / expanded).lstrip("/"))
        while path.name in ("*", ".*", "?*", ".[!.]*"):
            path = path.parent
        return path

    def _expanded(self, text: str) -> str | None:
        """``text`` with known variables put in; None when one isn't known, or they are longer than any path."""
        unknown = False
        room = _CHARS_AT_MOST

        def value(match: re.Match[str]) -> str:
            nonlocal unknown, room
            known = self._variables.get(match[1] or match[2])
            room -= len(known or "")
            unknown = unknown or known is None or room < 0
            return "" if unknown or known is None else known

        expanded = _VARIABLE.sub(value, text)
        return None if unknown or "$" in expanded else expanded

    def _is_protected(self, path: Path) -> bool:
        for one in {path, Path(os.path.realpath(path))}:
            if one.name == ".halo" or one == self._root or one in self._root.parents:
                return True
            if one in (Path("/"), Path.home(), Path("/home"), Path("/root")) or one.parent == Path("/home"):
                return True
        return False


def _simple_commands(command: str) -> list[list[str]]:
    """The simple commands of a command line, as words without quotes; what can't be split is no command."""
    lexer = shlex.shlex(
        command.replace("\\\n", "").replace("\n", " ; "), posix=True, punctuation_chars="();<>|&"
    )
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= set("();<>|&"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        return [words for words in commands if words]
    return [words for words in commands if words]


def _without_braces(text: str) -> Iterator[str]:
    """What ``{a,b}`` stands for, one text after the other; of endlessly many the first."""
    waiting = [text]
    for _ in range(_STEPS_AT_MOST):
        if not waiting:
            return
        text = waiting.pop()
        match = next((found for found in _BRACES.finditer(text) if "," in found[1]), None)
        if match is None:
            yield text
        else:
            before, behind = text[: match.start()], text[match.end() :]
            waiting += [before + piece + behind for piece in reversed(match[1].split(","))]
