"""The questions put to a host, how they are asked, and the raw answers. Nothing here interprets an answer."""
