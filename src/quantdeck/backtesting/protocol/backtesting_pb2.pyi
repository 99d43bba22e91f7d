from quantdeck.backtesting.protocol import marketdata_pb2 as _marketdata_pb2
from quantdeck.backtesting.protocol import quantdeck_pb2 as _quantdeck_pb2
from quantdeck.backtesting.protocol import strategies_pb2 as _strategies_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ValidationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALIDATION_STATUS_UNSPECIFIED: _ClassVar[ValidationStatus]
    APPROVED: _ClassVar[ValidationStatus]
    REJECTED: _ClassVar[ValidationStatus]
    INSUFFICIENT_DATA: _ClassVar[ValidationStatus]
    PENDING: _ClassVar[ValidationStatus]
VALIDATION_STATUS_UNSPECIFIED: ValidationStatus
APPROVED: ValidationStatus
REJECTED: ValidationStatus
INSUFFICIENT_DATA: ValidationStatus
PENDING: ValidationStatus

class BacktestRequest(_message.Message):
    __slots__ = ("candles", "strategy", "job")
    CANDLES_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    candles: _containers.RepeatedCompositeFieldContainer[_marketdata_pb2.Candle]
    strategy: _strategies_pb2.Strategy
    job: _quantdeck_pb2.Job
    def __init__(self, candles: _Optional[_Iterable[_Union[_marketdata_pb2.Candle, _Mapping]]] = ..., strategy: _Optional[_Union[_strategies_pb2.Strategy, _Mapping]] = ..., job: _Optional[_Union[_quantdeck_pb2.Job, _Mapping]] = ...) -> None: ...

class BatchBacktestRequest(_message.Message):
    __slots__ = ("candles", "strategy_name", "strategies")
    CANDLES_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_NAME_FIELD_NUMBER: _ClassVar[int]
    STRATEGIES_FIELD_NUMBER: _ClassVar[int]
    candles: _containers.RepeatedCompositeFieldContainer[_marketdata_pb2.Candle]
    strategy_name: str
    strategies: _containers.RepeatedCompositeFieldContainer[_strategies_pb2.Strategy]
    def __init__(self, candles: _Optional[_Iterable[_Union[_marketdata_pb2.Candle, _Mapping]]] = ..., strategy_name: _Optional[str] = ..., strategies: _Optional[_Iterable[_Union[_strategies_pb2.Strategy, _Mapping]]] = ...) -> None: ...

class BatchBacktestResult(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[BacktestResult]
    def __init__(self, results: _Optional[_Iterable[_Union[BacktestResult, _Mapping]]] = ...) -> None: ...

class BacktestResult(_message.Message):
    __slots__ = ("timeframe", "cumulative_return", "annualized_return", "sharpe_ratio", "sortino_ratio", "max_drawdown", "volatility", "win_rate", "profit_factor", "number_of_trades", "average_trade_duration", "alpha", "beta", "strategy_score", "figures")
    TIMEFRAME_FIELD_NUMBER: _ClassVar[int]
    CUMULATIVE_RETURN_FIELD_NUMBER: _ClassVar[int]
    ANNUALIZED_RETURN_FIELD_NUMBER: _ClassVar[int]
    SHARPE_RATIO_FIELD_NUMBER: _ClassVar[int]
    SORTINO_RATIO_FIELD_NUMBER: _ClassVar[int]
    MAX_DRAWDOWN_FIELD_NUMBER: _ClassVar[int]
    VOLATILITY_FIELD_NUMBER: _ClassVar[int]
    WIN_RATE_FIELD_NUMBER: _ClassVar[int]
    PROFIT_FACTOR_FIELD_NUMBER: _ClassVar[int]
    NUMBER_OF_TRADES_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_TRADE_DURATION_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_SCORE_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    timeframe: str
    cumulative_return: float
    annualized_return: float
    sharpe_ratio: float
    sortino_ratio: float
    max_drawdown: float
    volatility: float
    win_rate: float
    profit_factor: float
    number_of_trades: int
    average_trade_duration: float
    alpha: float
    beta: float
    strategy_score: float
    figures: _quantdeck_pb2.Figures
    def __init__(self, timeframe: _Optional[str] = ..., cumulative_return: _Optional[float] = ..., annualized_return: _Optional[float] = ..., sharpe_ratio: _Optional[float] = ..., sortino_ratio: _Optional[float] = ..., max_drawdown: _Optional[float] = ..., volatility: _Optional[float] = ..., win_rate: _Optional[float] = ..., profit_factor: _Optional[float] = ..., number_of_trades: _Optional[int] = ..., average_trade_duration: _Optional[float] = ..., alpha: _Optional[float] = ..., beta: _Optional[float] = ..., strategy_score: _Optional[float] = ..., figures: _Optional[_Union[_quantdeck_pb2.Figures, _Mapping]] = ...) -> None: ...

class WalkForwardConfig(_message.Message):
    __slots__ = ("train_window_bars", "test_window_bars", "step_bars", "min_windows")
    TRAIN_WINDOW_BARS_FIELD_NUMBER: _ClassVar[int]
    TEST_WINDOW_BARS_FIELD_NUMBER: _ClassVar[int]
    STEP_BARS_FIELD_NUMBER: _ClassVar[int]
    MIN_WINDOWS_FIELD_NUMBER: _ClassVar[int]
    train_window_bars: int
    test_window_bars: int
    step_bars: int
    min_windows: int
    def __init__(self, train_window_bars: _Optional[int] = ..., test_window_bars: _Optional[int] = ..., step_bars: _Optional[int] = ..., min_windows: _Optional[int] = ...) -> None: ...

class WalkForwardRequest(_message.Message):
    __slots__ = ("strategy", "candles", "config", "job")
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    CANDLES_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    strategy: _strategies_pb2.Strategy
    candles: _containers.RepeatedCompositeFieldContainer[_marketdata_pb2.Candle]
    config: WalkForwardConfig
    job: _quantdeck_pb2.Job
    def __init__(self, strategy: _Optional[_Union[_strategies_pb2.Strategy, _Mapping]] = ..., candles: _Optional[_Iterable[_Union[_marketdata_pb2.Candle, _Mapping]]] = ..., config: _Optional[_Union[WalkForwardConfig, _Mapping]] = ..., job: _Optional[_Union[_quantdeck_pb2.Job, _Mapping]] = ...) -> None: ...

class WindowResult(_message.Message):
    __slots__ = ("window_index", "in_sample_result", "out_of_sample_result", "train_start_bar", "train_end_bar", "test_start_bar", "test_end_bar")
    WINDOW_INDEX_FIELD_NUMBER: _ClassVar[int]
    IN_SAMPLE_RESULT_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_SAMPLE_RESULT_FIELD_NUMBER: _ClassVar[int]
    TRAIN_START_BAR_FIELD_NUMBER: _ClassVar[int]
    TRAIN_END_BAR_FIELD_NUMBER: _ClassVar[int]
    TEST_START_BAR_FIELD_NUMBER: _ClassVar[int]
    TEST_END_BAR_FIELD_NUMBER: _ClassVar[int]
    window_index: int
    in_sample_result: BacktestResult
    out_of_sample_result: BacktestResult
    train_start_bar: int
    train_end_bar: int
    test_start_bar: int
    test_end_bar: int
    def __init__(self, window_index: _Optional[int] = ..., in_sample_result: _Optional[_Union[BacktestResult, _Mapping]] = ..., out_of_sample_result: _Optional[_Union[BacktestResult, _Mapping]] = ..., train_start_bar: _Optional[int] = ..., train_end_bar: _Optional[int] = ..., test_start_bar: _Optional[int] = ..., test_end_bar: _Optional[int] = ...) -> None: ...

class WalkForwardResult(_message.Message):
    __slots__ = ("status", "rejection_reason", "windows_count", "in_sample_sharpe", "out_of_sample_sharpe", "sharpe_degradation", "oos_sharpe_std_dev", "window_results", "in_sample_return", "out_of_sample_return", "return_degradation")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REJECTION_REASON_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    IN_SAMPLE_SHARPE_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_SAMPLE_SHARPE_FIELD_NUMBER: _ClassVar[int]
    SHARPE_DEGRADATION_FIELD_NUMBER: _ClassVar[int]
    OOS_SHARPE_STD_DEV_FIELD_NUMBER: _ClassVar[int]
    WINDOW_RESULTS_FIELD_NUMBER: _ClassVar[int]
    IN_SAMPLE_RETURN_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_SAMPLE_RETURN_FIELD_NUMBER: _ClassVar[int]
    RETURN_DEGRADATION_FIELD_NUMBER: _ClassVar[int]
    status: ValidationStatus
    rejection_reason: str
    windows_count: int
    in_sample_sharpe: float
    out_of_sample_sharpe: float
    sharpe_degradation: float
    oos_sharpe_std_dev: float
    window_results: _containers.RepeatedCompositeFieldContainer[WindowResult]
    in_sample_return: float
    out_of_sample_return: float
    return_degradation: float
    def __init__(self, status: _Optional[_Union[ValidationStatus, str]] = ..., rejection_reason: _Optional[str] = ..., windows_count: _Optional[int] = ..., in_sample_sharpe: _Optional[float] = ..., out_of_sample_sharpe: _Optional[float] = ..., sharpe_degradation: _Optional[float] = ..., oos_sharpe_std_dev: _Optional[float] = ..., window_results: _Optional[_Iterable[_Union[WindowResult, _Mapping]]] = ..., in_sample_return: _Optional[float] = ..., out_of_sample_return: _Optional[float] = ..., return_degradation: _Optional[float] = ...) -> None: ...
