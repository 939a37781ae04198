"""Matrix factorisation through maps that saturate, with a softmax on the codes."""
