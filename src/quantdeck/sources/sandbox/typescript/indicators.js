// `indicators` of the realm: the rules of domain/indicators.py, whose numbers these are to 1e-9.
//
// A series comes back as long as it went in: a figure stands at the value that completes it, and is NaN before the
// first. Values that are not finite numbers count as missing.

export function indicators() {
  "use strict";
  const LONGEST = 100_000;
  const STILL = 1e-290;
  const { isFinite, isInteger } = Number;
  const { max, min, sqrt } = Math;
  const { isArray } = Array;
  const typeError = TypeError;
  const rangeError = RangeError;

  const series = (data) => {
    if (!isArray(data) && !ArrayBuffer.isView(data)) throw new typeError("data must be an array of numbers");
    return data;
  };

  const length = (period, name = "period") => {
    if (!isInteger(period) || period < 1 || period > LONGEST) {
      throw new rangeError(`${name} must be a whole number from 1 to ${LONGEST}, not ${String(period).slice(0, 40)}`);
    }
    return period;
  };

  // A figure over the finite values, each put back where it stood.
  const overWhole = (figure, data) => {
    const given = series(data);
    const places = [];
    const whole = [];
    for (let place = 0; place < given.length; place += 1) {
      const value = given[place];
      if (typeof value === "number" && isFinite(value)) {
        places.push(place);
        whole.push(value);
      }
    }
    const found = figure(whole);
    const out = new Array(given.length);
    for (let place = 0; place < given.length; place += 1) out[place] = NaN;
    const begin = whole.length - found.length;
    for (let place = 0; place < found.length; place += 1) {
      if (isFinite(found[place])) out[places[begin + place]] = found[place];
    }
    return out;
  };

  // For each window the sums of the distances of its values from the newest one, and of their squares: being
  // differences inside the window they are nothing where it is flat, whatever has been before.
  const windows = (x, period, figure) => {
    const out = [];
    for (let end = period - 1; end < x.length; end += 1) {
      const newest = x[end];
      let total = 0;
      let squares = 0;
      for (let back = 1; back < period; back += 1) {
        const step = x[end - back] - newest;
        total += step;
        squares += step * step;
      }
      out.push(figure(newest, total, squares));
    }
    return out;
  };

  // The same for long windows, in steps that do not grow with them: from the first value of a block as long as one.
  const blocks = (x, period, figure) => {
    const out = [];
    for (let start = 0; start + period <= x.length; start += period) {
      // Windows that end in the block after `start`: the tail of this block and the head of the next.
      const reference = x[start + period - 1];
      const tails = new Float64Array(period + 1);
      const tailSquares = new Float64Array(period + 1);
      for (let place = period - 1; place >= 0; place -= 1) {
        const step = x[start + place] - reference;
        tails[place] = tails[place + 1] + step;
        tailSquares[place] = tailSquares[place + 1] + step * step;
      }
      let head = 0;
      let headSquares = 0;
      for (let place = 0; place < period; place += 1) {
        if (place) {
          const end = start + period - 1 + place;
          if (end >= x.length) break;
          const step = x[end] - reference;
          head += step;
          headSquares += step * step;
        }
        out.push(figure(reference, tails[place] + head, tailSquares[place] + headSquares));
      }
    }
    return out;
  };

  const moving = (x, period, figure) => (period <= 64 ? windows : blocks)(x, period, figure);
  const mean = (x, period) => moving(x, period, (at, total) => at + total / period);
  const spread = (x, period) =>
    moving(x, period, (at, total, squares) => sqrt(max(squares - (total * total) / period, 0) / period));

  const seeded = (x, period, weight) => {
    if (x.length < period) return [];
    let total = 0;
    let [least, most] = [Infinity, -Infinity];
    for (let place = 0; place < period; place += 1) {
      total += x[place];
      least = min(least, x[place]);
      most = max(most, x[place]);
    }
    let average = total / period;
    const out = [min(max(average, least), most)];
    for (let place = period; place < x.length; place += 1) {
      average += (x[place] - average) * weight;
      least = min(least, x[place]);
      most = max(most, x[place]);
      out.push(min(max(average, least), most));
    }
    return out;
  };

  const strength = (x, period) => {
    if (x.length <= period) return [];
    const gains = [];
    const losses = [];
    for (let place = 1; place < x.length; place += 1) {
      const move = x[place] - x[place - 1];
      gains.push(max(move, 0));
      losses.push(max(-move, 0));
    }
    const up = seeded(gains, period, 1 / period);
    const down = seeded(losses, period, 1 / period);
    return up.map((gain, place) => {
      const moved = gain + down[place];
      return moved <= STILL ? NaN : (gain / moved) * 100;
    });
  };

  const numbered = (value, name) => {
    if (typeof value !== "number" || !isFinite(value)) throw new typeError(`${name} must be a number`);
    return value;
  };

  const sma = (data, period) => overWhole((x) => mean(x, length(period)), data);
  const ema = (data, period) => overWhole((x) => seeded(x, length(period), 2 / (period + 1)), data);
  const rsi = (data, period = 14) => overWhole((x) => strength(x, length(period)), data);

  const bollingerBands = (data, period = 20, stdDev = 2) => {
    numbered(stdDev, "stdDev");
    const middle = sma(data, period);
    const reach = overWhole((x) => spread(x, length(period)), data);
    return {
      upper: middle.map((at, place) => at + stdDev * reach[place]),
      middle,
      lower: middle.map((at, place) => at - stdDev * reach[place]),
    };
  };

  const macd = (data, fast = 12, slow = 26, signal = 9) => {
    length(fast, "fast");
    length(slow, "slow");
    length(signal, "signal");
    const behind = ema(data, slow);
    const line = ema(data, fast).map((at, place) => at - behind[place]);
    const average = ema(line, signal);
    return { macd: line, signal: average, histogram: line.map((at, place) => at - average[place]) };
  };

  // In percent: from 100 to 110 is 10.
  const percentChange = (from, to) => {
    numbered(from, "from");
    numbered(to, "to");
    return from === 0 ? NaN : ((to - from) / from) * 100;
  };

  // Of the population.
  const standardDeviation = (data) => {
    const given = series(data);
    const whole = [];
    for (let place = 0; place < given.length; place += 1) {
      if (typeof given[place] === "number" && isFinite(given[place])) whole.push(given[place]);
    }
    return whole.length ? blocks(whole, whole.length, (at, total, squares) =>
      sqrt(max(squares - (total * total) / whole.length, 0) / whole.length))[0] : NaN;
  };

  return { sma, ema, rsi, bollingerBands, macd, percentChange, standardDeviation };
}
