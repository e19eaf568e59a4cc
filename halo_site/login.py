"""Who is let in: a person who may see things, whether or not they are staff in Django's sense."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.forms import AuthenticationForm

SEE = "workspaces.view"


def may_enter(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.has_perm(SEE)


def may_see_people(request: HttpRequest) -> bool:
    return request.user.has_perm("auth.view_user") or request.user.has_perm("auth.change_user")


def may_see_groups(request: HttpRequest) -> bool:
    return request.user.has_perm("auth.view_group") or request.user.has_perm("auth.change_group")


def may_see_tokens(request: HttpRequest) -> bool:
    return request.user.has_perm("core.view_apitoken") or request.user.has_perm("core.change_apitoken")


class LoginForm(AuthenticationForm):
    """Says after a right password why somebody isn't let in, instead of calling the password wrong."""

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        if not user.is_active:
            raise ValidationError(self.error_messages["inactive"], code="inactive")
        if not getattr(user, "has_perm")(SEE):  # noqa: B009 - the base class of users knows no permissions
            raise ValidationError(
                f"{user.get_username()} may not see anything here yet. An administrator can give the "
                f"permission {SEE}, for instance through the group Reviewers.",
                code="forbidden",
            )
