-- What agents decided and why. Rows are only ever added; `seq` is the order in which they came.

CREATE TABLE agent_decisions (
    seq {identity},
    decision_id {uuid} NOT NULL UNIQUE,
    symbol {text} NOT NULL,
    action {text} NOT NULL CHECK (action IN ('BUY', 'SELL', 'HOLD')),
    confidence {float} NOT NULL,
    opportunity_score {float},
    opportunity_tier {text} CHECK (opportunity_tier IN ('HOT', 'GOOD', 'NEUTRAL', 'LOW')),
    reasoning {text} NOT NULL,
    tool_calls {json} NOT NULL,
    caller {text} NOT NULL,
    created_at {timestamp} NOT NULL
);

CREATE INDEX agent_decisions_newest ON agent_decisions (created_at DESC, decision_id DESC);
CREATE INDEX agent_decisions_by_symbol ON agent_decisions (symbol, created_at DESC, decision_id DESC);
