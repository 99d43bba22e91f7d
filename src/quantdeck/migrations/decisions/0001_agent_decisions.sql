-- What agents decided and why. Rows are only ever added; `seq` is the order in which they came, and tells apart what
-- was decided at one instant. Both indexes hold all that a page is chosen by, so that a far one skips entries, not rows.

CREATE TABLE agent_decisions (
    seq {identity},
    decision_id {uuid} NOT NULL UNIQUE,
    symbol {text} NOT NULL,
    action {text} NOT NULL CHECK (action IN ('BUY', 'SELL', 'HOLD')),
    confidence {float} NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    opportunity_score {float} CHECK (opportunity_score BETWEEN 0 AND 100),
    opportunity_tier {text} CHECK (opportunity_tier IN ('HOT', 'GOOD', 'NEUTRAL', 'LOW')),
    reasoning {text} NOT NULL,
    tool_calls {object} NOT NULL,
    caller {text} NOT NULL,
    created_at {timestamp} NOT NULL
);

CREATE INDEX agent_decisions_newest ON agent_decisions (created_at, seq, action);
CREATE INDEX agent_decisions_by_symbol ON agent_decisions (symbol, created_at, seq, action);
