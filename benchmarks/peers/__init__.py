"""The servers that are compared, one program each.

A program is started as `… stdio TOOLS` or `… http TOOLS`, where TOOLS is how many tools it lists: `noop`, `rows` and
fillers. Over stdio nothing but protocol frames may reach stdout. Over HTTP it listens on a free port of 127.0.0.1 and
prints the address of its endpoint, one line, on stdout. `workload` says what the tools answer.

The file stays empty: what it imported would count in every Python peer's cold start.
"""
