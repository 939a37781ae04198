"""Different families on different columns of one table, independent given the component."""

from mixfold.families.product.bayes import ProductFamily
from mixfold.families.product.build import product, product_of
from mixfold.families.product.family import PlainProduct
from mixfold.families.product.records import Part

__all__ = ["Part", "PlainProduct", "ProductFamily", "product", "product_of"]
