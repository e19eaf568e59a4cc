"""Evolution in a terminal: who acts, what is shown, how progress is followed."""
