"""Models of counts: documents as mixtures of topics, and clusters of such documents."""
