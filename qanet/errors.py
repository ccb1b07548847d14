"""The one exception that stands for a mistake the user can mend."""


class UserError(Exception):
    """A mistake in what the user gave: a file, a key or a value.

    The message is one line that names the culprit and says what to do. The command
    line prints it without a traceback and exits with code 2.
    """
