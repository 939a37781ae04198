"""Formulas as MathML, made when the site is built: browsers show it, and nothing is loaded."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
_FACTORS = "i|n|sub|sup|subsup|row|frac|sqrt|over"
_RELATIONS = "=<>\N{TILDE OPERATOR}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}"


def mathml(tex: str, *, block: bool) -> str:
    """The formula as MathML; what cannot be read is a ValueError that names it."""
    try:
        return _spaced(str(tex2mathml(tex.strip(), as_block=block)))
    except (MathError, SyntaxError) as error:
        raise ValueError(f"cannot read the formula {tex.strip()!r}: {error}") from error


def _spaced(made: str) -> str:
    """Spaces that browsers leave out, and fences that stay as they are.

    Between a function and what it is applied to, unless that is in parentheses, and between it and
    a factor before it (p ln N is not pln N); around a relation with which the cell of a table
    begins.
    """
    made = re.sub(
        rf"(</m(?:{_FACTORS})>)(\s*<mi>[a-z]+</mi>\s*<mo>&ApplyFunction;)",
        r'\1<mspace width="0.1667em"></mspace>\2',
        made,
    )
    made = re.sub(
        r'(<mo>&ApplyFunction;</mo>)(?!\s*<mo stretchy="false">\()',
        r'\1<mspace width="0.1667em"></mspace>',
        made,
    )
    made = re.sub(rf"(<mtd>\s*)(<mo>[{_RELATIONS}])", r"\1<mi></mi>\2", made)
    return re.sub("<mo(?![^>]*stretchy)([^>]*)>‖</mo>", r'<mo\1 stretchy="false">‖</mo>', made)


def _made(node: nodes.Element, *, block: bool) -> str:
    try:
        return mathml(node.astext(), block=block)
    except ValueError as error:
        logger.warning(str(error), location=node)
        return f"<code>{node.astext()}</code>"


def visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_made(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{_made(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
