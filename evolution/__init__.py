"""Runs and applies: how a prompt change is proposed, judged, published and taken back."""
