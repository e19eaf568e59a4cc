from django.apps import AppConfig


class HaloSiteConfig(AppConfig):
    name = "halo_site"
    verbose_name = "Halo"
