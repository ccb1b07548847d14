"""A reader behind HTTP: the server and its page."""
