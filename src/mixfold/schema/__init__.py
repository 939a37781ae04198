"""What the columns of a table are: read as people write them, given to models as numbers."""

from __future__ import annotations

from mixfold.schema.column import Column as Column
from mixfold.schema.schema import Schema as Schema
