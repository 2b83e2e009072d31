def tests(settings): return []
