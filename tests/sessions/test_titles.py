"""A session's title: its first message, sixty characters, without what editors put in front; then it stays."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Session
from sessions_app.titles import title_of
from tests.sessions.models_in_tests import Script


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("  two\n\tlines  ", "two lines"),
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 59 + "…"),
        ("word " * 20, "word " * 11 + "word…"),
        ("<ide_opened_file>src/a.py\nline</ide_opened_file>\nMend it", "Mend it"),
        ("<system-reminder>x</system-reminder><ide_selection>y</ide_selection> Mend it", "Mend it"),
        ("[File: src/a.py] [Selection 3-5]\nMend it", "Mend it"),
        ("[Open files] <context a='1'>\n<b></b></context>[Cursor 1:2] Mend it", "Mend it"),
        ("<ide_opened_file>never closed", "<ide_opened_file>never closed"),
        ("<b>bold</b> words stay", "<b>bold</b> words stay"),
        ("[1] is a footnote", "[1] is a footnote"),
        ("<context>all of it</context>", ""),
        (" \n ", ""),
    ],
)
def test_a_title_is_what_the_person_wrote(text: str, title: str) -> None:
    assert title_of(text) == title


def test_any_number_of_editor_lines_is_passed_over() -> None:
    """Each used to copy all that was left behind it: minutes for a file of a few megabytes."""
    assert title_of("[File: a.py]" * 400_000 + "Mend it") == "Mend it"
    assert title_of("<context>b</context>" * 250_000 + "Mend it") == "Mend it"


def session_command(*words: str) -> str:
    out = io.StringIO()
    call_command("session", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_first_message_names_it_and_a_person_may_name_it_anew(
    session: Session, agent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Script("One.", "Two.", "Three.").install(monkeypatch)

    def titled_after(text: str) -> str:
        call_command("chat", text, workspace=session.workspace.path, session=session.pk)
        return Session.objects.get().title

    assert titled_after("[File: a.py] Why?") == "Why?"
    assert titled_after("And then?") == "Why?"
    told = session_command("rename", session.pk, "  The  why of\nit ")
    assert told == f"Session {session.pk} is called The why of it now.\n"
    assert titled_after("At last?") == "The why of it"
    assert json.loads(session_command("rename", session.pk[:8], "Short", "--json")) == {
        "id": session.pk,
        "title": "Short",
    }
    with pytest.raises(CommandError, match="one line of 1 to 200 characters"):
        session_command("rename", session.pk, "x" * 201)
    assert Session.objects.get().title == "Short"
