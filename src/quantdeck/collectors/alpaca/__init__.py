"""Minute bars of Alpaca, into whatever store holds the bars: what is missing by REST, what is new by a stream.

    stream ── bars, corrections ──▶ memory ── every minute ──▶ the store
    REST ──── what is missing ─────────────── page by page ──▶

Live bars are written a minute late at most, so that is all a killed collector loses. What it missed while it was away
is asked for when it is back, and until that is done `owed` says on disk from when on something may be missing: a bar
that came later must not be taken for a sign that all before it are there.
"""
