"""Why a peer is missing from a table."""


class NotAvailable(Exception):
    """This peer cannot run here; the text is the reason shown in its row."""
