"""Names of other libraries, and what sash calls the same thing."""

from __future__ import annotations

__all__ = ["ELSEWHERE"]

#: What to write in sash, by the name in pandas, Polars, Spark, Flink or SQL.
ELSEWHERE = {
    "any_value": 'sash.first("x", ignore_nulls=True)',
    "approx_count_distinct": 'sash.hll("x")',
    "approx_percentile": 'sash.quantiles("x", 0.5)',
    "array_agg": 'sash.collect("x")',
    "collect_list": 'sash.collect("x")',
    "collect_set": 'sash.collect_distinct("x")',
    "bool_and": 'sash.all("x")',
    "bool_or": 'sash.any("x")',
    "corr": 'sash.correlation("x", "y")',
    "count_if": 'sash.count(), which takes where=pyarrow.compute.field("x") > 0',
    "covar_pop": 'sash.population_covariance("x", "y")',
    "covar_samp": 'sash.covariance("x", "y")',
    "every": 'sash.all("x")',
    "first_value": 'sash.first("x")',
    "hop": 'sash.sliding("1 hour", "1 minute")',
    "hopping": 'sash.sliding("1 hour", "1 minute")',
    "kurt": 'sash.kurtosis("x")',
    "last_value": 'sash.last("x")',
    "len": "sash.count()",
    "listagg": 'sash.concat("x")',
    "n_unique": 'sash.count_distinct("x")',
    "nunique": 'sash.count_distinct("x")',
    "percentile": 'sash.quantile("x", 0.5)',
    "percentile_approx": 'sash.quantiles("x", 0.5)',
    "prod": 'sash.product("x")',
    "quantile_cont": 'sash.quantile("x", 0.5)',
    "size": "sash.count()",
    "stddev_pop": 'sash.population_stddev("x")',
    "stddev_samp": 'sash.stddev("x")',
    "stdev": 'sash.stddev("x")',
    "string_agg": 'sash.concat("x")',
    "skew": 'sash.skewness("x")',
    "some": 'sash.any("x")',
    "std": 'sash.stddev("x")',
    "var": 'sash.variance("x")',
    "var_pop": 'sash.population_variance("x")',
    "var_samp": 'sash.variance("x")',
}
