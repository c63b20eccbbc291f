"""Getting in, and proving that one can get back in.

`fresh` and `door` are also used by the action plugin commit_confirm, so they import relatively and use
only the standard library.
"""
