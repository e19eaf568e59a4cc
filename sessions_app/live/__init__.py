"""What a view of a session follows: its log, whoever writes it, and what streams in this process beside it.

The log is the truth. ``follow`` (one follower for each session that is looked at in this process) hands each
view the rows as the log has them; ``view`` is one socket's view, with the growing row; ``catch_up`` is what a
view missed; ``condition`` is what the database says: working, waiting, usage.
"""
