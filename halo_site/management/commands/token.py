"""``halo token create | list | revoke``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from core.arguments import from_one
from core.db.acting_user import NoActor, acting_user
from core.db.api_tokens import MAX_DAYS, SCOPES, TokenRefused, issue, revoke
from core.db.models import ApiToken
from core.texts import for_terminal, json_text


class Command(BaseCommand):
    help = "Make, list and revoke bearer tokens of the REST API. A token's secret is shown once."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help="make a token; its secret is printed now and never again")
        create.add_argument("name", metavar="NAME", help="what it is for")
        create.add_argument("--as", dest="as_user", required=True, metavar="USER", help="whose it is")
        create.add_argument(
            "--scope",
            dest="scopes",
            action="append",
            required=True,
            choices=list(SCOPES),
            help="what it may be used for; give it several times for several",
        )
        create.add_argument(
            "--days",
            type=from_one,
            default=90,
            metavar="N",
            help=f"how long it lives (90; at most {MAX_DAYS})",
        )
        listing = verbs.add_parser("list", help="all tokens; never their secrets")
        gone = verbs.add_parser("revoke", help="from now on it opens nothing")
        gone.add_argument("id", type=from_one, metavar="NUMBER", help="its number in the list")
        for verb in (create, listing, gone):
            verb.add_argument("--json", action="store_true", help="machine-readable output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except (NoActor, TokenRefused) as error:
            raise CommandError(for_terminal(str(error))) from error

    def _create(self, options: dict[str, Any]) -> None:
        issued = issue(
            user=acting_user(options["as_user"]),
            name=options["name"],
            scopes=options["scopes"],
            days=options["days"],
            now=clock.now(),
        )
        if options["json"]:
            self.stdout.write(json_text(_described(issued.token) | {"secret": issued.secret}))
            return
        self.stderr.write(f"Token {issued.token.pk} is made. Keep it now; it is not shown again:")
        self.stdout.write(issued.secret)

    def _list(self, options: dict[str, Any]) -> None:
        rows = [_described(row) for row in ApiToken.objects.select_related("user").order_by("pk")]
        if options["json"]:
            self.stdout.write(json_text(rows))
            return
        for row in rows:
            state = "revoked" if row["revoked"] else "expired" if row["expired"] else "live"
            self.stdout.write(
                f"{row['id']:>5}  {state:8} until {row['expires_at'][:10]}  {for_terminal(row['user'])}  "
                f"{for_terminal(row['name'])}  ({', '.join(row['scopes'])})"
            )
        if not rows:
            self.stdout.write("No tokens yet. Make one with: halo token create NAME --as USER --scope view")

    def _revoke(self, options: dict[str, Any]) -> None:
        if not revoke(options["id"], now=clock.now()):
            raise CommandError(f"There is no live token {options['id']}; `halo token list` shows them.")
        if options["json"]:
            self.stdout.write(json_text({"id": options["id"], "revoked": True}))
            return
        self.stdout.write(f"Token {options['id']} is revoked.")


def _described(row: ApiToken) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "user": row.user.get_username(),
        "scopes": row.scopes,
        "created_at": clock.stamp(row.created_at),
        "expires_at": clock.stamp(row.expires_at),
        "expired": row.expires_at <= clock.now(),
        "revoked": row.revoked_at is not None,
    }
