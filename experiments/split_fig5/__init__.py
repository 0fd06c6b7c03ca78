"""[S] Figure 5: what establishments and firms lose, by policy and in fact."""
