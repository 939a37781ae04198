"""Gaussian families with conjugate priors: normal-Wishart, normal-gamma, known covariance."""
