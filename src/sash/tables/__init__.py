"""Turns tables and batches from users into Arrow columns, and results into tables.

arrow          tables of any library as Arrow tables, and back
intake         batches of a stream, in the column types of its query
keys           key columns as small integers
order          rows in order of time
rows           rows in order of key and time
counting_sort  rows in order of key, in one pass
texts          numbers for texts that are known from earlier batches
numbers        values of any type as whole numbers, in a table
dictionaries   values of any type as labels, in a stream
answers        answers as columns of results
threads        pieces of a table, on which threads work
type_names     names of types in SQL
"""
