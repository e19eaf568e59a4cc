from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "core.db"
    label = "core"
    verbose_name = "Events"
    default_auto_field = "django.db.models.BigAutoField"
