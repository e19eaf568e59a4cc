from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="transaction_id",
            field=models.BigIntegerField(default=0, editable=False),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["transaction_id", "id"], name="event_order"),
        ),
    ]
