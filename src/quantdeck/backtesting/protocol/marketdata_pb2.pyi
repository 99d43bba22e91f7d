import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AssetClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ASSET_CLASS_UNSPECIFIED: _ClassVar[AssetClass]
    CRYPTO: _ClassVar[AssetClass]
    STOCKS: _ClassVar[AssetClass]
    FOREX: _ClassVar[AssetClass]
    COMMODITIES: _ClassVar[AssetClass]
ASSET_CLASS_UNSPECIFIED: AssetClass
CRYPTO: AssetClass
STOCKS: AssetClass
FOREX: AssetClass
COMMODITIES: AssetClass

class Candle(_message.Message):
    __slots__ = ("timestamp", "currency_pair", "open", "high", "low", "close", "volume", "asset_class", "source")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_PAIR_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    ASSET_CLASS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    timestamp: _timestamp_pb2.Timestamp
    currency_pair: str
    open: float
    high: float
    low: float
    close: float
    volume: float
    asset_class: AssetClass
    source: str
    def __init__(self, timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., currency_pair: _Optional[str] = ..., open: _Optional[float] = ..., high: _Optional[float] = ..., low: _Optional[float] = ..., close: _Optional[float] = ..., volume: _Optional[float] = ..., asset_class: _Optional[_Union[AssetClass, str]] = ..., source: _Optional[str] = ...) -> None: ...
