"""What a running process tells of itself: an event for each call, counts and latencies, log lines."""
