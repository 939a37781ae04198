"""Factor models: spectra, PPCA in closed form, starts, predictions."""
