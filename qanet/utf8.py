"""What UTF-8 can hold."""


def is_encodable(text: str) -> bool:
    """Whether a text is without half surrogate pairs, which Python and JSON allow."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
