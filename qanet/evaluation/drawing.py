"""Draws a report. Importing this needs the extra `plot` (matplotlib)."""

from pathlib import Path

from qanet.errors import needing
from qanet.evaluation.file_names import PICTURE
from qanet.evaluation.report import Report, Scores, title
from qanet.files import write_file

with needing("--report draws with matplotlib", "matplotlib"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches; a group's room has two bars and parts them from the next.
WIDTH, GROUP_HEIGHT, PANEL_MARGIN, MARGIN = 7.5, 0.36, 0.35, 1.2
BAR = 0.4  # Of a group's room.


def save_picture(report: Report, directory: Path) -> None:
    """Writes `report.png`. The same report makes the same file, byte for byte."""
    figure = draw(report)
    write_file(
        directory / PICTURE,
        lambda file: figure.savefig(file, format="png", dpi=120),
    )


def draw(report: Report) -> Figure:
    """F1 and exact match of each group as bars, a panel for each kind.

    Dotted lines across the panels show the scores of all questions.
    """
    sizes = [len(groups) for groups in report.groups.values()]
    height = sum(sizes) * GROUP_HEIGHT + len(sizes) * PANEL_MARGIN + MARGIN
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    panels = figure.subplots(len(sizes), sharex=True, height_ratios=sizes)
    for panel, (kind, groups) in zip(panels, report.groups.items(), strict=True):
        _draw_kind(panel, kind, groups, report.all)
    lowest = panels[-1]
    # Room for the figure at the end of a full bar.
    lowest.set_xlim(0, 108)
    lowest.set_xticks(range(0, 101, 20))
    lowest.set_xlabel("score (%)")
    figure.legend(
        *lowest.get_legend_handles_labels(),
        title=f"All {report.all.questions:,} questions (dotted lines)",
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
    return figure


def _draw_kind(
    panel: Axes, kind: str, groups: dict[str, Scores], whole: Scores
) -> None:
    """The groups from top to bottom, each with F1 above exact match."""
    rows = range(len(groups))
    for name, label, shift, color in (
        ("f1", "F1", -BAR / 2, "tab:blue"),
        ("exact_match", "exact match", BAR / 2, "tab:orange"),
    ):
        overall = getattr(whole, name)
        bars = panel.barh(
            [row + shift for row in rows],
            [getattr(scores, name) for scores in groups.values()],
            height=BAR,
            color=color,
            label=f"{label}: {overall:.1f}",
        )
        # The line ends before a figure that it would cross.
        panel.axvline(overall, color=color, linestyle=":", zorder=0.5)
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        panel.bar_label(bars, fmt="%.1f", padding=3, fontsize=8.5, bbox=behind)
    panel.set_yticks(
        rows, [f"{group} ({scores.questions:,})" for group, scores in groups.items()]
    )
    panel.set_ylim(len(groups) - 0.5, -0.5)
    panel.set_title(f"{title(kind)} (number of questions)", loc="left", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
