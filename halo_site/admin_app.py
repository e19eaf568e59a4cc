from django.contrib.admin.apps import AdminConfig


class HaloAdminConfig(AdminConfig):
    """Django's admin with Halo's site in place of the default one."""

    default = False
    default_site = "halo_site.admin_site.HaloAdminSite"
