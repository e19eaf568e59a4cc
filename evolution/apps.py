from django.apps import AppConfig


class EvolutionConfig(AppConfig):
    name = "evolution"
    verbose_name = "Evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evolution.chat_command import register

        register()
