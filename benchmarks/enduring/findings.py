"""What a part of the endurance benchmark has found."""

from dataclasses import dataclass, field


@dataclass
class Finding:
    """One row of the table.

    Attributes:
        what: what was done.
        tries: how many times.
        wrong: a line for each time that it did not end as it should, with what is
            needed to repeat it.
        remark: figures beside it.
    """

    what: str
    tries: int
    wrong: list[str] = field(default_factory=list)
    remark: str = ""
