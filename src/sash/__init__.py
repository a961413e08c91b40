from . import operators
from .operators import operator
