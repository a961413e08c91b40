"""Names that other libraries have for what sash has under another one."""

from __future__ import annotations

__all__ = ["ELSEWHERE"]

#: What to write instead, by the name in pandas, Polars, Spark, Flink or SQL.
ELSEWHERE = {
    "any_value": 'sash.first("x", ignore_nulls=True)',
    "approx_count_distinct": 'sash.hll("x")',
    "approx_percentile": 'sash.quantiles("x", 0.5)',
    "array_agg": 'sash.collect("x")',
    "collect_list": 'sash.collect("x")',
    "collect_set": 'sash.collect_distinct("x")',
    "first_value": 'sash.first("x")',
    "hopping": 'sash.sliding("1 hour", "1 minute")',
    "last_value": 'sash.last("x")',
    "len": "sash.count()",
    "listagg": 'sash.concat("x")',
    "median": 'sash.quantiles("x", 0.5), which estimates it within a stated bound',
    "n_unique": 'sash.count_distinct("x")',
    "nunique": 'sash.count_distinct("x")',
    "percentile": 'sash.quantiles("x", 0.5)',
    "percentile_approx": 'sash.quantiles("x", 0.5)',
    "prod": 'sash.product("x")',
    "quantile": 'sash.quantiles("x", 0.5)',
    "size": "sash.count()",
    "std": 'sash.stddev("x")',
    "stddev_pop": 'sash.population_stddev("x")',
    "stddev_samp": 'sash.stddev("x")',
    "stdev": 'sash.stddev("x")',
    "string_agg": 'sash.concat("x")',
    "var": 'sash.variance("x")',
    "var_pop": 'sash.population_variance("x")',
    "var_samp": 'sash.variance("x")',
}
