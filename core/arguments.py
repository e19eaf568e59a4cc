"""What the commands' argument parsers need beyond argparse."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any


def intermix(parser: ArgumentParser) -> None:
    """Let arguments stand before, between and behind options: ``enqueue SESSION --follow HINT``.

    By itself argparse ends an optional or repeated argument at the first option and refuses the rest.
    """
    plain: Any = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Namespace, list[str]]:
        parser.parse_known_args = plain  # type: ignore[method-assign]
        try:
            return parser.parse_known_intermixed_args(args, namespace)
        finally:
            parser.parse_known_args = parse  # type: ignore[method-assign,assignment]

    parser.parse_known_args = parse  # type: ignore[method-assign,assignment]


def from_one(text: str) -> int:
    """The ``type`` of an option that counts: a whole number from 1 on."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"a whole number from 1 on is expected, this is {text!r}")
    return number


def port(text: str) -> int:
    """The ``type`` of ``--port``; 0 takes a free one."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 65_535:
        raise ArgumentTypeError(f"a port is a number from 0 to 65535, this is {text!r}")
    return number
