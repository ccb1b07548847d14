"""Applications of readers that are at hand."""

from qanet.serving.readers import Readers
from qanet.serving.served import Loaded
from qanet.serving.server import make_app


def app_of(reader, model=None, limits=None):
    """The application of one reader, called `only`."""
    return app_of_many({"only": Loaded(reader, model)}, limits)


def app_of_many(loaded, limits=None):
    """The application of several readers by name."""
    readers = Readers(
        {name: lambda one=one: one for name, one in loaded.items()}, limits
    )
    readers.load()
    return make_app(readers)
