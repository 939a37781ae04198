"""Charts as SVG: axes, lines, bars and points, small enough to be read as source."""
