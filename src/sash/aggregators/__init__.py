from .two_stacks_lite import TwoStacksLite
