"""Back-translation: a paraphrased data set (Yu et al., 2018, section 3)."""
