"""What came of an audit or a run, as text for people and JSON for programs."""
