"""A reader for use elsewhere: SavedModel, LiteRT, ONNX."""
