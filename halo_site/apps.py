from django.apps import AppConfig


class HaloSiteConfig(AppConfig):
    name = "halo_site"
    verbose_name = "Halo"

    def ready(self) -> None:
        from halo_site import checks  # noqa: F401 - importing registers the checks
