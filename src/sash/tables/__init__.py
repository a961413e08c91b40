"""Tables on their way in and out, as Arrow columns.

arrow     tables of any kind as Arrow, and results on their way back
intake    what is pushed into a stream, in the types of its query
keys      key columns as small integers
order     rows in order of time
answers   answers as columns of results
"""
