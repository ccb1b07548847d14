"""Names of the files that an evaluation writes."""

# `Evaluation.save`; the last only where the model tells whether there is an answer.
RESULT_FILES = ("predictions.json", "nbest.json", "metrics.json", "na_prob.json")
# `Report.save` and `qanet.evaluation.drawing`.
REPORT_FILES = ("report.json", "report.png")
