from .contract import Operator, operator
from .numeric import *
from .order import *
from .together import together
