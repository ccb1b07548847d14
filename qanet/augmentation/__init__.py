"""Back-translation: a data set in other words (Yu et al., 2018, section 3)."""
