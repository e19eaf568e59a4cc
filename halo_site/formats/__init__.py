"""How Django's own pages write dates and times: as ``core.texts.moment_words`` does everywhere else."""
