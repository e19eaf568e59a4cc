from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from halo_site.api import api, no_such_path
from halo_site.api_docs import docs_page
from halo_site.health import healthz, readyz

handler400 = "halo_site.problems.bad_request"
handler403 = "halo_site.problems.permission_denied"
handler404 = "halo_site.problems.page_not_found"
handler500 = "halo_site.problems.server_error"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", healthz),
    path("readyz", readyz),
    path("api/docs", docs_page),
    path("api/", api.urls),
    path("api/<path:rest>", no_such_path),
    path("admin/", admin.site.urls),
]
