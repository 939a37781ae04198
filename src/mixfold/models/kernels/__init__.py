"""Models that see rows through a kernel: blocks of the Gram matrix, made when they are needed."""
