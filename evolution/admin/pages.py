"""What the pages of runs, applies and kept scenarios have in common: who may look, the row, and a decision on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from core.db.admin import ReadOnlyAdmin, note_since, since
from evolution.errors import Refused
from workspaces.models import Workspace

RowT = TypeVar("RowT", bound=Model)

_STATUS_OF = {"forbidden": 403, "not_found": 404}
"""Every other refusal is a conflict with how things are now: 409."""
_MANY_WORKSPACES = 200


def person(request: HttpRequest) -> User:
    """Who asks; the admin lets nobody in who has no name."""
    return cast(User, request.user)


def address(row: Model) -> str:
    """Of the row's own page."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


class Pages(ReadOnlyAdmin, Generic[RowT]):
    """A list, a page a row, and decisions sent from it.

    A decision is one of the package's verbs with its note in the admin's log and a message; it says where to go
    then. Refused, the row's page comes again with the reason and what was entered.
    """

    list_page: ClassVar[str]
    row_page: ClassVar[str]
    gone: ClassVar[str]
    """What is said of an id that no row has."""

    def rows(self) -> QuerySet[RowT]:
        """With all that a row's page shows of others."""
        raise NotImplementedError

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        """The list's context, its title among it."""
        raise NotImplementedError

    def shown(self, request: HttpRequest, row: RowT) -> dict[str, Any]:
        """The row's context."""
        raise NotImplementedError

    def verbs(self) -> Mapping[str, Callable[[HttpRequest, RowT], str]]:
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        return [self._row_url("decide", self.decide), *super().get_urls()]

    def _row_url(self, name: str, view: Callable[..., HttpResponse]) -> URLPattern:
        model = f"{self.opts.app_label}_{self.opts.model_name}"
        return path(f"<str:row_id>/{name}/", self.admin_site.admin_view(view), name=f"{model}_{name}")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        return self._list(request)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self._may_look(request)
        return self._page(request, self._find(object_id))

    def decide(self, request: HttpRequest, row_id: str) -> HttpResponse:
        self._may_look(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self._find(row_id)
        verb = self.verbs().get(request.POST.get("action", ""))
        if verb is None:
            raise Http404("There is no such decision.")
        try:
            return redirect(verb(request, row))
        except Refused as refused:
            return self._page(request, self._find(row_id), refused=refused)

    def _list(self, request: HttpRequest, *, refused: Refused | None = None) -> HttpResponse:
        workspaces = Workspace.objects.order_by("path")[:_MANY_WORKSPACES]
        return self._show(
            request, self.list_page, {"workspaces": workspaces, **self.listed(request)}, refused=refused
        )

    def _page(self, request: HttpRequest, row: RowT, *, refused: Refused | None = None) -> HttpResponse:
        context = {**self.shown(request, row), "title": str(row), "original": row}
        return self._show(request, self.row_page, context, refused=refused)

    def _show(
        self,
        request: HttpRequest,
        template: str,
        context: dict[str, Any],
        *,
        refused: Refused | None = None,
    ) -> TemplateResponse:
        """``refused`` sets the HTTP status as well; what was entered is there to be shown again."""
        given = {**self.admin_site.each_context(request), "opts": self.opts, **since(request)}
        answer = {"refused": refused, "entered": request.POST}
        status = _STATUS_OF.get(refused.code, 409) if refused else 200
        return TemplateResponse(request, template, {**given, **answer, **context}, status=status)

    def _find(self, row_id: str) -> RowT:
        """Raises Http404."""
        row = self.rows().filter(pk=unquote(row_id).replace("\0", "")).first()
        if row is None:
            raise Http404(self.gone)
        return row

    def _may_look(self, request: HttpRequest) -> None:
        """Raises PermissionDenied. Call it before anything is read: what changes from then on is told the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        note_since(request)
