"""Names of the files that an evaluation writes."""

METRICS = "metrics.json"
# The best answer of each question, and the best few.
PREDICTIONS, NBEST = "predictions.json", "nbest.json"
# Only where the model tells whether there is an answer.
NA_PROB = "na_prob.json"
RESULT_FILES = (PREDICTIONS, NBEST, METRICS, NA_PROB)

REPORT, PICTURE = "report.json", "report.png"
REPORT_FILES = (REPORT, PICTURE)
