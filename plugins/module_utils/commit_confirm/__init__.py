"""The host's side of commit_confirm: what is armed, what it puts back, and how a change is made under it."""
