"""``halo chat`` as a person uses it: at a real terminal, and in a pipe, against a server on loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.providers.testing import ScriptedServer, Step, hang, text, tool_calls
from tests.terminal import CTRL_C, CTRL_D, Terminal, piped

pytestmark = pytest.mark.timeout(600)  # each test starts several interpreters


class Chat:
    """A workspace whose agent asks ``server``."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.environment = {"HALO_HOME": str(home)}
        self.run("migrate", "-v0")
        self.run("workspace", "add", str(root))

    def ask(self, server: ScriptedServer) -> None:
        folder = self.root / ".halo" / "agents" / "helper"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "agent.yaml").write_text(
            "name: Helper\ntools: [file_list, shell_exec]\n"
            f"model: {{provider: openai-compatible, id: test-model, endpoint: '{server.endpoint}'}}\n"
        )

    def run(self, *arguments: str, stdin: str = "") -> str:
        done = piped(arguments, text=stdin, environment=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def terminal(self, *arguments: str) -> Terminal:
        chat = ("chat", "-w", str(self.root), "-a", "helper", *arguments)
        return Terminal(*chat, environment=self.environment)

    def newest(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.run("session", "list", "--json"))[0]
        return found


@pytest.fixture
def chat(halo_home: Path, tmp_path: Path) -> Chat:
    root = tmp_path / "ws"
    (root / ".halo").mkdir(parents=True)
    return Chat(root, halo_home)


def script(*steps: Step) -> ScriptedServer:
    return ScriptedServer(list(steps))


def test_streaming_ctrl_c_once_new_and_leaving(chat: Chat) -> None:
    steps = (
        tool_calls(("file_list", {"path": "."}), before="Let me look."),
        hang("These words ", "come at once"),
        text("The second ", "answer."),
        text("A fresh start."),
    )
    with script(*steps) as server:
        chat.ask(server)
        with chat.terminal() as terminal:
            terminal.expect("with Helper. /help lists commands.")
            terminal.expect("> ")
            terminal.type("first question\n")
            terminal.expect("Let me look.")
            terminal.expect("· file_list path='.'")
            terminal.expect("These words come at once")  # the reply has not ended, and never will
            terminal.type(CTRL_C)
            terminal.expect("Interrupting; Ctrl-C again leaves.")
            terminal.expect("Interrupted. What was done so far stays in the session.")
            terminal.expect("> ")
            terminal.type("second question\n")
            terminal.expect("The second answer.")
            terminal.expect("> ")
            terminal.type("/session info\n")
            terminal.expect("first question")
            terminal.expect("access full, 1 exchange,")
            terminal.expect("> ")
            terminal.type("/new\n")
            terminal.expect("New session ")
            terminal.expect("> ")
            terminal.type("third question\n")
            terminal.expect("A fresh start.")
            terminal.expect("> ")
            terminal.type(CTRL_D)
            terminal.expect("To go on with it: halo chat -w ")
            session = terminal.seen.rsplit(" -s ", 1)[1].strip()
            assert terminal.exit_code() == 0
    sent = str(server.requests[2]["messages"])
    assert "These words come at once" in sent and "cut off" in sent, "what was said stays, marked"
    assert "first question" not in str(server.requests[3]["messages"]), "a new session knows nothing"
    assert chat.newest()["id"] == session
    assert "Traceback" not in terminal.seen


def test_ctrl_c_twice_leaves_and_s_goes_on_with_it(chat: Chat) -> None:
    """The command takes no notice of SIGTERM, so the first Ctrl-C is not obeyed at once."""
    stubborn = tool_calls(("shell_exec", {"command": "trap '' TERM; while true; do sleep 0.1; done"}))
    with script(stubborn, text("Here I am again.")) as server:
        chat.ask(server)
        with chat.terminal() as terminal:
            terminal.expect("> ")
            terminal.type("remember the M8 bolt\n")
            terminal.expect("· shell_exec")
            terminal.type(CTRL_C)
            terminal.expect("Interrupting; Ctrl-C again leaves.")
            terminal.type(CTRL_C)
            terminal.expect(" -s ")
            assert terminal.exit_code() == 130
            session = terminal.seen.rsplit(" -s ", 1)[1].strip()
        with chat.terminal("-s", session) as terminal:
            terminal.expect(f"Session {session} with Helper.")
            terminal.expect("> ")
            terminal.type("and now?\n")
            terminal.expect("Here I am again.")
            terminal.expect("> ")
            terminal.type(CTRL_C)
            terminal.expect("To go on with it")
            assert terminal.exit_code() == 0, "at the prompt Ctrl-C just leaves"
    assert "remember the M8 bolt" in str(server.requests[1]["messages"])
    assert chat.newest()["id"] == session


def test_a_question_at_the_terminal_and_one_in_a_pipe(chat: Chat) -> None:
    with script(text("From the ", "pipe."), text("At the terminal."), hang("Half")) as server:
        chat.ask(server)
        arguments = ("chat", "-w", str(chat.root), "-a", "helper")
        done = piped(arguments, text="piped\nquestion\n", environment=chat.environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "From the pipe.\n", "")
        with chat.terminal("-n", "one question") as terminal:
            terminal.expect("At the terminal.")
            assert terminal.exit_code() == 0
        with chat.terminal("-n", "another") as terminal:
            terminal.expect("Half")
            terminal.type(CTRL_C)
            terminal.expect("Interrupted.")
            assert terminal.exit_code() == 130
    assert server.requests[0]["messages"][-1]["content"].endswith("piped\nquestion\n")


def test_compaction_at_the_terminal(chat: Chat) -> None:
    (chat.root / ".halo" / "settings.yaml").write_text("general: {compact: {keep_messages: 1}}\n")
    with script(text("One."), text("Two."), text("They said hello."), text("Three.")) as server:
        chat.ask(server)
        with chat.terminal() as terminal:
            terminal.expect("> ")
            terminal.type("/compact\n")
            terminal.expect("There is nothing to compact yet.")
            for question, answer in (("alpha", "One."), ("beta", "Two.")):
                terminal.expect("> ")
                terminal.type(f"{question}\n")
                terminal.expect(answer)
            terminal.expect("> ")
            terminal.type("/compact\n")
            terminal.expect("Compacting the conversation")
            terminal.expect("Compacted: ")
            terminal.expect("> ")
            terminal.type("third\n")
            terminal.expect("Three.")
            terminal.expect("> ")
            terminal.type(CTRL_D)
            assert terminal.exit_code() == 0
    sent = str(server.requests[3]["messages"])
    assert "They said hello." in sent and "beta" in sent and "alpha" not in sent
