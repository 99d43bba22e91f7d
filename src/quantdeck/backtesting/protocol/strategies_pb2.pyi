from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Strategy(_message.Message):
    __slots__ = ("parameters", "strategy_name")
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_NAME_FIELD_NUMBER: _ClassVar[int]
    parameters: _any_pb2.Any
    strategy_name: str
    def __init__(self, parameters: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., strategy_name: _Optional[str] = ...) -> None: ...

class ConfigurableStrategyParameters(_message.Message):
    __slots__ = ("intValues", "doubleValues")
    class IntValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class DoubleValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    INTVALUES_FIELD_NUMBER: _ClassVar[int]
    DOUBLEVALUES_FIELD_NUMBER: _ClassVar[int]
    intValues: _containers.ScalarMap[str, int]
    doubleValues: _containers.ScalarMap[str, float]
    def __init__(self, intValues: _Optional[_Mapping[str, int]] = ..., doubleValues: _Optional[_Mapping[str, float]] = ...) -> None: ...

class SmaRsiParameters(_message.Message):
    __slots__ = ("movingAveragePeriod", "rsiPeriod", "overboughtThreshold", "oversoldThreshold")
    MOVINGAVERAGEPERIOD_FIELD_NUMBER: _ClassVar[int]
    RSIPERIOD_FIELD_NUMBER: _ClassVar[int]
    OVERBOUGHTTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OVERSOLDTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    movingAveragePeriod: int
    rsiPeriod: int
    overboughtThreshold: float
    oversoldThreshold: float
    def __init__(self, movingAveragePeriod: _Optional[int] = ..., rsiPeriod: _Optional[int] = ..., overboughtThreshold: _Optional[float] = ..., oversoldThreshold: _Optional[float] = ...) -> None: ...

class EmaMacdParameters(_message.Message):
    __slots__ = ("shortEmaPeriod", "longEmaPeriod", "signalPeriod")
    SHORTEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortEmaPeriod: int
    longEmaPeriod: int
    signalPeriod: int
    def __init__(self, shortEmaPeriod: _Optional[int] = ..., longEmaPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class AdxStochasticParameters(_message.Message):
    __slots__ = ("adxPeriod", "stochasticKPeriod", "stochasticDPeriod", "overboughtThreshold", "oversoldThreshold")
    ADXPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICKPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICDPERIOD_FIELD_NUMBER: _ClassVar[int]
    OVERBOUGHTTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OVERSOLDTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    adxPeriod: int
    stochasticKPeriod: int
    stochasticDPeriod: int
    overboughtThreshold: int
    oversoldThreshold: int
    def __init__(self, adxPeriod: _Optional[int] = ..., stochasticKPeriod: _Optional[int] = ..., stochasticDPeriod: _Optional[int] = ..., overboughtThreshold: _Optional[int] = ..., oversoldThreshold: _Optional[int] = ...) -> None: ...

class AroonMfiParameters(_message.Message):
    __slots__ = ("aroonPeriod", "mfiPeriod", "overboughtThreshold", "oversoldThreshold")
    AROONPERIOD_FIELD_NUMBER: _ClassVar[int]
    MFIPERIOD_FIELD_NUMBER: _ClassVar[int]
    OVERBOUGHTTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OVERSOLDTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    aroonPeriod: int
    mfiPeriod: int
    overboughtThreshold: int
    oversoldThreshold: int
    def __init__(self, aroonPeriod: _Optional[int] = ..., mfiPeriod: _Optional[int] = ..., overboughtThreshold: _Optional[int] = ..., oversoldThreshold: _Optional[int] = ...) -> None: ...

class IchimokuCloudParameters(_message.Message):
    __slots__ = ("tenkanSenPeriod", "kijunSenPeriod", "senkouSpanBPeriod", "chikouSpanPeriod")
    TENKANSENPERIOD_FIELD_NUMBER: _ClassVar[int]
    KIJUNSENPERIOD_FIELD_NUMBER: _ClassVar[int]
    SENKOUSPANBPERIOD_FIELD_NUMBER: _ClassVar[int]
    CHIKOUSPANPERIOD_FIELD_NUMBER: _ClassVar[int]
    tenkanSenPeriod: int
    kijunSenPeriod: int
    senkouSpanBPeriod: int
    chikouSpanPeriod: int
    def __init__(self, tenkanSenPeriod: _Optional[int] = ..., kijunSenPeriod: _Optional[int] = ..., senkouSpanBPeriod: _Optional[int] = ..., chikouSpanPeriod: _Optional[int] = ...) -> None: ...

class ParabolicSarParameters(_message.Message):
    __slots__ = ("accelerationFactorStart", "accelerationFactorIncrement", "accelerationFactorMax")
    ACCELERATIONFACTORSTART_FIELD_NUMBER: _ClassVar[int]
    ACCELERATIONFACTORINCREMENT_FIELD_NUMBER: _ClassVar[int]
    ACCELERATIONFACTORMAX_FIELD_NUMBER: _ClassVar[int]
    accelerationFactorStart: float
    accelerationFactorIncrement: float
    accelerationFactorMax: float
    def __init__(self, accelerationFactorStart: _Optional[float] = ..., accelerationFactorIncrement: _Optional[float] = ..., accelerationFactorMax: _Optional[float] = ...) -> None: ...

class SmaEmaCrossoverParameters(_message.Message):
    __slots__ = ("smaPeriod", "emaPeriod")
    SMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    smaPeriod: int
    emaPeriod: int
    def __init__(self, smaPeriod: _Optional[int] = ..., emaPeriod: _Optional[int] = ...) -> None: ...

class DoubleEmaCrossoverParameters(_message.Message):
    __slots__ = ("shortEmaPeriod", "longEmaPeriod")
    SHORTEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortEmaPeriod: int
    longEmaPeriod: int
    def __init__(self, shortEmaPeriod: _Optional[int] = ..., longEmaPeriod: _Optional[int] = ...) -> None: ...

class TripleEmaCrossoverParameters(_message.Message):
    __slots__ = ("shortEmaPeriod", "mediumEmaPeriod", "longEmaPeriod")
    SHORTEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    MEDIUMEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortEmaPeriod: int
    mediumEmaPeriod: int
    longEmaPeriod: int
    def __init__(self, shortEmaPeriod: _Optional[int] = ..., mediumEmaPeriod: _Optional[int] = ..., longEmaPeriod: _Optional[int] = ...) -> None: ...

class HeikenAshiParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class LinearRegressionChannelsParameters(_message.Message):
    __slots__ = ("period", "multiplier")
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    period: int
    multiplier: float
    def __init__(self, period: _Optional[int] = ..., multiplier: _Optional[float] = ...) -> None: ...

class VwapMeanReversionParameters(_message.Message):
    __slots__ = ("vwapPeriod", "movingAveragePeriod", "deviationMultiplier")
    VWAPPERIOD_FIELD_NUMBER: _ClassVar[int]
    MOVINGAVERAGEPERIOD_FIELD_NUMBER: _ClassVar[int]
    DEVIATIONMULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    vwapPeriod: int
    movingAveragePeriod: int
    deviationMultiplier: float
    def __init__(self, vwapPeriod: _Optional[int] = ..., movingAveragePeriod: _Optional[int] = ..., deviationMultiplier: _Optional[float] = ...) -> None: ...

class BbandWRParameters(_message.Message):
    __slots__ = ("bbandsPeriod", "wrPeriod", "stdDevMultiplier")
    BBANDSPERIOD_FIELD_NUMBER: _ClassVar[int]
    WRPERIOD_FIELD_NUMBER: _ClassVar[int]
    STDDEVMULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    bbandsPeriod: int
    wrPeriod: int
    stdDevMultiplier: float
    def __init__(self, bbandsPeriod: _Optional[int] = ..., wrPeriod: _Optional[int] = ..., stdDevMultiplier: _Optional[float] = ...) -> None: ...

class AtrCciParameters(_message.Message):
    __slots__ = ("atrPeriod", "cciPeriod")
    ATRPERIOD_FIELD_NUMBER: _ClassVar[int]
    CCIPERIOD_FIELD_NUMBER: _ClassVar[int]
    atrPeriod: int
    cciPeriod: int
    def __init__(self, atrPeriod: _Optional[int] = ..., cciPeriod: _Optional[int] = ...) -> None: ...

class DonchianBreakoutParameters(_message.Message):
    __slots__ = ("donchianPeriod",)
    DONCHIANPERIOD_FIELD_NUMBER: _ClassVar[int]
    donchianPeriod: int
    def __init__(self, donchianPeriod: _Optional[int] = ...) -> None: ...

class VolatilityStopParameters(_message.Message):
    __slots__ = ("atrPeriod", "multiplier")
    ATRPERIOD_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    atrPeriod: int
    multiplier: float
    def __init__(self, atrPeriod: _Optional[int] = ..., multiplier: _Optional[float] = ...) -> None: ...

class AtrTrailingStopParameters(_message.Message):
    __slots__ = ("atrPeriod", "multiplier")
    ATRPERIOD_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    atrPeriod: int
    multiplier: float
    def __init__(self, atrPeriod: _Optional[int] = ..., multiplier: _Optional[float] = ...) -> None: ...

class MomentumSmaCrossoverParameters(_message.Message):
    __slots__ = ("momentumPeriod", "smaPeriod")
    MOMENTUMPERIOD_FIELD_NUMBER: _ClassVar[int]
    SMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    momentumPeriod: int
    smaPeriod: int
    def __init__(self, momentumPeriod: _Optional[int] = ..., smaPeriod: _Optional[int] = ...) -> None: ...

class KstOscillatorParameters(_message.Message):
    __slots__ = ("rma1Period", "rma2Period", "rma3Period", "rma4Period", "signalPeriod")
    RMA1PERIOD_FIELD_NUMBER: _ClassVar[int]
    RMA2PERIOD_FIELD_NUMBER: _ClassVar[int]
    RMA3PERIOD_FIELD_NUMBER: _ClassVar[int]
    RMA4PERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    rma1Period: int
    rma2Period: int
    rma3Period: int
    rma4Period: int
    signalPeriod: int
    def __init__(self, rma1Period: _Optional[int] = ..., rma2Period: _Optional[int] = ..., rma3Period: _Optional[int] = ..., rma4Period: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class StochasticRsiParameters(_message.Message):
    __slots__ = ("rsiPeriod", "stochasticKPeriod", "stochasticDPeriod", "overboughtThreshold", "oversoldThreshold")
    RSIPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICKPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICDPERIOD_FIELD_NUMBER: _ClassVar[int]
    OVERBOUGHTTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OVERSOLDTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    rsiPeriod: int
    stochasticKPeriod: int
    stochasticDPeriod: int
    overboughtThreshold: int
    oversoldThreshold: int
    def __init__(self, rsiPeriod: _Optional[int] = ..., stochasticKPeriod: _Optional[int] = ..., stochasticDPeriod: _Optional[int] = ..., overboughtThreshold: _Optional[int] = ..., oversoldThreshold: _Optional[int] = ...) -> None: ...

class RviParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class MassIndexParameters(_message.Message):
    __slots__ = ("emaPeriod", "sumPeriod")
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    SUMPERIOD_FIELD_NUMBER: _ClassVar[int]
    emaPeriod: int
    sumPeriod: int
    def __init__(self, emaPeriod: _Optional[int] = ..., sumPeriod: _Optional[int] = ...) -> None: ...

class MomentumPinballParameters(_message.Message):
    __slots__ = ("shortPeriod", "longPeriod")
    SHORTPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortPeriod: int
    longPeriod: int
    def __init__(self, shortPeriod: _Optional[int] = ..., longPeriod: _Optional[int] = ...) -> None: ...

class VolumeWeightedMacdParameters(_message.Message):
    __slots__ = ("shortPeriod", "longPeriod", "signalPeriod")
    SHORTPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortPeriod: int
    longPeriod: int
    signalPeriod: int
    def __init__(self, shortPeriod: _Optional[int] = ..., longPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class ObvEmaParameters(_message.Message):
    __slots__ = ("emaPeriod",)
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    emaPeriod: int
    def __init__(self, emaPeriod: _Optional[int] = ...) -> None: ...

class ChaikinOscillatorParameters(_message.Message):
    __slots__ = ("fastPeriod", "slowPeriod")
    FASTPERIOD_FIELD_NUMBER: _ClassVar[int]
    SLOWPERIOD_FIELD_NUMBER: _ClassVar[int]
    fastPeriod: int
    slowPeriod: int
    def __init__(self, fastPeriod: _Optional[int] = ..., slowPeriod: _Optional[int] = ...) -> None: ...

class KlingerVolumeParameters(_message.Message):
    __slots__ = ("shortPeriod", "longPeriod", "signalPeriod")
    SHORTPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortPeriod: int
    longPeriod: int
    signalPeriod: int
    def __init__(self, shortPeriod: _Optional[int] = ..., longPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class VolumeBreakoutParameters(_message.Message):
    __slots__ = ("volumeMultiplier",)
    VOLUMEMULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    volumeMultiplier: float
    def __init__(self, volumeMultiplier: _Optional[float] = ...) -> None: ...

class PvtParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class VptParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class VolumeSpreadAnalysisParameters(_message.Message):
    __slots__ = ("volumePeriod",)
    VOLUMEPERIOD_FIELD_NUMBER: _ClassVar[int]
    volumePeriod: int
    def __init__(self, volumePeriod: _Optional[int] = ...) -> None: ...

class TickVolumeAnalysisParameters(_message.Message):
    __slots__ = ("tickPeriod",)
    TICKPERIOD_FIELD_NUMBER: _ClassVar[int]
    tickPeriod: int
    def __init__(self, tickPeriod: _Optional[int] = ...) -> None: ...

class VolumeProfileDeviationsParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class VolumeProfileParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class StochasticEmaParameters(_message.Message):
    __slots__ = ("emaPeriod", "stochasticKPeriod", "stochasticDPeriod", "overboughtThreshold", "oversoldThreshold")
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICKPERIOD_FIELD_NUMBER: _ClassVar[int]
    STOCHASTICDPERIOD_FIELD_NUMBER: _ClassVar[int]
    OVERBOUGHTTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    OVERSOLDTHRESHOLD_FIELD_NUMBER: _ClassVar[int]
    emaPeriod: int
    stochasticKPeriod: int
    stochasticDPeriod: int
    overboughtThreshold: int
    oversoldThreshold: int
    def __init__(self, emaPeriod: _Optional[int] = ..., stochasticKPeriod: _Optional[int] = ..., stochasticDPeriod: _Optional[int] = ..., overboughtThreshold: _Optional[int] = ..., oversoldThreshold: _Optional[int] = ...) -> None: ...

class CmoMfiParameters(_message.Message):
    __slots__ = ("cmoPeriod", "mfiPeriod")
    CMOPERIOD_FIELD_NUMBER: _ClassVar[int]
    MFIPERIOD_FIELD_NUMBER: _ClassVar[int]
    cmoPeriod: int
    mfiPeriod: int
    def __init__(self, cmoPeriod: _Optional[int] = ..., mfiPeriod: _Optional[int] = ...) -> None: ...

class RsiEmaCrossoverParameters(_message.Message):
    __slots__ = ("rsiPeriod", "emaPeriod")
    RSIPERIOD_FIELD_NUMBER: _ClassVar[int]
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    rsiPeriod: int
    emaPeriod: int
    def __init__(self, rsiPeriod: _Optional[int] = ..., emaPeriod: _Optional[int] = ...) -> None: ...

class TrixSignalLineParameters(_message.Message):
    __slots__ = ("trixPeriod", "signalPeriod")
    TRIXPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    trixPeriod: int
    signalPeriod: int
    def __init__(self, trixPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class CmfZeroLineParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class RainbowOscillatorParameters(_message.Message):
    __slots__ = ("periods",)
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    periods: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, periods: _Optional[_Iterable[int]] = ...) -> None: ...

class PriceOscillatorSignalParameters(_message.Message):
    __slots__ = ("fastPeriod", "slowPeriod", "signalPeriod")
    FASTPERIOD_FIELD_NUMBER: _ClassVar[int]
    SLOWPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    fastPeriod: int
    slowPeriod: int
    signalPeriod: int
    def __init__(self, fastPeriod: _Optional[int] = ..., slowPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class AwesomeOscillatorParameters(_message.Message):
    __slots__ = ("shortPeriod", "longPeriod")
    SHORTPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortPeriod: int
    longPeriod: int
    def __init__(self, shortPeriod: _Optional[int] = ..., longPeriod: _Optional[int] = ...) -> None: ...

class DemaTemaCrossoverParameters(_message.Message):
    __slots__ = ("demaPeriod", "temaPeriod")
    DEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    TEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    demaPeriod: int
    temaPeriod: int
    def __init__(self, demaPeriod: _Optional[int] = ..., temaPeriod: _Optional[int] = ...) -> None: ...

class MacdCrossoverParameters(_message.Message):
    __slots__ = ("shortEmaPeriod", "longEmaPeriod", "signalPeriod")
    SHORTEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    LONGEMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    SIGNALPERIOD_FIELD_NUMBER: _ClassVar[int]
    shortEmaPeriod: int
    longEmaPeriod: int
    signalPeriod: int
    def __init__(self, shortEmaPeriod: _Optional[int] = ..., longEmaPeriod: _Optional[int] = ..., signalPeriod: _Optional[int] = ...) -> None: ...

class VwapCrossoverParameters(_message.Message):
    __slots__ = ("vwapPeriod", "movingAveragePeriod")
    VWAPPERIOD_FIELD_NUMBER: _ClassVar[int]
    MOVINGAVERAGEPERIOD_FIELD_NUMBER: _ClassVar[int]
    vwapPeriod: int
    movingAveragePeriod: int
    def __init__(self, vwapPeriod: _Optional[int] = ..., movingAveragePeriod: _Optional[int] = ...) -> None: ...

class RocMaCrossoverParameters(_message.Message):
    __slots__ = ("rocPeriod", "maPeriod")
    ROCPERIOD_FIELD_NUMBER: _ClassVar[int]
    MAPERIOD_FIELD_NUMBER: _ClassVar[int]
    rocPeriod: int
    maPeriod: int
    def __init__(self, rocPeriod: _Optional[int] = ..., maPeriod: _Optional[int] = ...) -> None: ...

class RegressionChannelParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class FramaParameters(_message.Message):
    __slots__ = ("sc", "fc", "alpha")
    SC_FIELD_NUMBER: _ClassVar[int]
    FC_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    sc: float
    fc: int
    alpha: float
    def __init__(self, sc: _Optional[float] = ..., fc: _Optional[int] = ..., alpha: _Optional[float] = ...) -> None: ...

class PivotParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class DoubleTopBottomParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class FibonacciRetracementsParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class PriceGapParameters(_message.Message):
    __slots__ = ("period",)
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    period: int
    def __init__(self, period: _Optional[int] = ...) -> None: ...

class RenkoChartParameters(_message.Message):
    __slots__ = ("brickSize",)
    BRICKSIZE_FIELD_NUMBER: _ClassVar[int]
    brickSize: float
    def __init__(self, brickSize: _Optional[float] = ...) -> None: ...

class RangeBarsParameters(_message.Message):
    __slots__ = ("rangeSize",)
    RANGESIZE_FIELD_NUMBER: _ClassVar[int]
    rangeSize: float
    def __init__(self, rangeSize: _Optional[float] = ...) -> None: ...

class GannSwingParameters(_message.Message):
    __slots__ = ("gannPeriod",)
    GANNPERIOD_FIELD_NUMBER: _ClassVar[int]
    gannPeriod: int
    def __init__(self, gannPeriod: _Optional[int] = ...) -> None: ...

class SarMfiParameters(_message.Message):
    __slots__ = ("accelerationFactorStart", "accelerationFactorIncrement", "accelerationFactorMax", "mfiPeriod")
    ACCELERATIONFACTORSTART_FIELD_NUMBER: _ClassVar[int]
    ACCELERATIONFACTORINCREMENT_FIELD_NUMBER: _ClassVar[int]
    ACCELERATIONFACTORMAX_FIELD_NUMBER: _ClassVar[int]
    MFIPERIOD_FIELD_NUMBER: _ClassVar[int]
    accelerationFactorStart: float
    accelerationFactorIncrement: float
    accelerationFactorMax: float
    mfiPeriod: int
    def __init__(self, accelerationFactorStart: _Optional[float] = ..., accelerationFactorIncrement: _Optional[float] = ..., accelerationFactorMax: _Optional[float] = ..., mfiPeriod: _Optional[int] = ...) -> None: ...

class AdxDmiParameters(_message.Message):
    __slots__ = ("adxPeriod", "diPeriod")
    ADXPERIOD_FIELD_NUMBER: _ClassVar[int]
    DIPERIOD_FIELD_NUMBER: _ClassVar[int]
    adxPeriod: int
    diPeriod: int
    def __init__(self, adxPeriod: _Optional[int] = ..., diPeriod: _Optional[int] = ...) -> None: ...

class ElderRayMAParameters(_message.Message):
    __slots__ = ("emaPeriod",)
    EMAPERIOD_FIELD_NUMBER: _ClassVar[int]
    emaPeriod: int
    def __init__(self, emaPeriod: _Optional[int] = ...) -> None: ...

class DpoCrossoverParameters(_message.Message):
    __slots__ = ("dpoPeriod", "maPeriod")
    DPOPERIOD_FIELD_NUMBER: _ClassVar[int]
    MAPERIOD_FIELD_NUMBER: _ClassVar[int]
    dpoPeriod: int
    maPeriod: int
    def __init__(self, dpoPeriod: _Optional[int] = ..., maPeriod: _Optional[int] = ...) -> None: ...

class VariablePeriodEmaParameters(_message.Message):
    __slots__ = ("minPeriod", "maxPeriod")
    MINPERIOD_FIELD_NUMBER: _ClassVar[int]
    MAXPERIOD_FIELD_NUMBER: _ClassVar[int]
    minPeriod: int
    maxPeriod: int
    def __init__(self, minPeriod: _Optional[int] = ..., maxPeriod: _Optional[int] = ...) -> None: ...

class SentimentParameters(_message.Message):
    __slots__ = ("extreme_fear_threshold", "extreme_greed_threshold", "sentiment_weight", "enable_divergence", "enable_momentum")
    EXTREME_FEAR_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    EXTREME_GREED_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    SENTIMENT_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ENABLE_DIVERGENCE_FIELD_NUMBER: _ClassVar[int]
    ENABLE_MOMENTUM_FIELD_NUMBER: _ClassVar[int]
    extreme_fear_threshold: float
    extreme_greed_threshold: float
    sentiment_weight: float
    enable_divergence: bool
    enable_momentum: bool
    def __init__(self, extreme_fear_threshold: _Optional[float] = ..., extreme_greed_threshold: _Optional[float] = ..., sentiment_weight: _Optional[float] = ..., enable_divergence: _Optional[bool] = ..., enable_momentum: _Optional[bool] = ...) -> None: ...
