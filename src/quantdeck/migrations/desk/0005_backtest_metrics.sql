-- All figures of an implementation's backtest, and what it was run on: the columns before are what rankings need.

ALTER TABLE strategy_implementations ADD COLUMN backtest_metrics {object};
