"""What several public estimators share: data, rows, targets, fits, files."""
