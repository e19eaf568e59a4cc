from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from halo_site.health import healthz

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", healthz),
    path("admin/", admin.site.urls),
]
