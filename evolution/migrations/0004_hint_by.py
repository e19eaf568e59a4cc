import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F


def name_who_asked_anew(apps, _schema_editor):
    """So far only the latest decision said so."""
    run = apps.get_model("evolution", "EvolutionRun")
    run.objects.filter(decision_reason="retry with a new hint").update(hint_by=F("decided_by"))


class Migration(migrations.Migration):
    dependencies = [
        ("evolution", "0003_regression_scenario"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="evolutionrun",
            name="hint_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(name_who_asked_anew, migrations.RunPython.noop),
    ]
