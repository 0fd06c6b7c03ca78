"""SQL text to a ``Query``: a gate in front of the parser, a small grammar, and a whitelist for everything in it."""
