"""Data sets out of others: back-translation (Yu et al., 2018), a filter, clozes."""
