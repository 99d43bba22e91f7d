from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Job(_message.Message):
    __slots__ = ("name", "spec", "parameters", "symbol", "terms", "bars")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    BARS_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: bytes
    parameters: bytes
    symbol: str
    terms: Terms
    bars: Columns
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[bytes] = ..., parameters: _Optional[bytes] = ..., symbol: _Optional[str] = ..., terms: _Optional[_Union[Terms, _Mapping]] = ..., bars: _Optional[_Union[Columns, _Mapping]] = ...) -> None: ...

class Terms(_message.Message):
    __slots__ = ("market", "cash", "fee", "slippage", "risk_free")
    MARKET_FIELD_NUMBER: _ClassVar[int]
    CASH_FIELD_NUMBER: _ClassVar[int]
    FEE_FIELD_NUMBER: _ClassVar[int]
    SLIPPAGE_FIELD_NUMBER: _ClassVar[int]
    RISK_FREE_FIELD_NUMBER: _ClassVar[int]
    market: str
    cash: float
    fee: float
    slippage: float
    risk_free: float
    def __init__(self, market: _Optional[str] = ..., cash: _Optional[float] = ..., fee: _Optional[float] = ..., slippage: _Optional[float] = ..., risk_free: _Optional[float] = ...) -> None: ...

class Columns(_message.Message):
    __slots__ = ("time", "open", "high", "low", "close", "volume")
    TIME_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    time: bytes
    open: bytes
    high: bytes
    low: bytes
    close: bytes
    volume: bytes
    def __init__(self, time: _Optional[bytes] = ..., open: _Optional[bytes] = ..., high: _Optional[bytes] = ..., low: _Optional[bytes] = ..., close: _Optional[bytes] = ..., volume: _Optional[bytes] = ...) -> None: ...

class Figures(_message.Message):
    __slots__ = ("engine", "exposure", "average_trade_duration_s", "left_out")
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    EXPOSURE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_TRADE_DURATION_S_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    engine: str
    exposure: float
    average_trade_duration_s: float
    left_out: int
    def __init__(self, engine: _Optional[str] = ..., exposure: _Optional[float] = ..., average_trade_duration_s: _Optional[float] = ..., left_out: _Optional[int] = ...) -> None: ...
