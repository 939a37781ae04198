"""scikit-learn shells: signature, docstring, validation, published attributes. No mathematics."""
