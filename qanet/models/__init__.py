"""Reading models: one file per paper, all with the same inputs and outputs."""
