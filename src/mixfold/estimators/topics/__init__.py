"""Topic models of counts of words."""
