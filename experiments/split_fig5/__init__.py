"""Figure 5 of Seeman et al.: what establishments and firms lose, by policy and in fact."""
