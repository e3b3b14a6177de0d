"""``stratalog demo``: everything at work, in one go, with real parts only.

``data`` makes up a shop's records, ``stage`` owns what runs (a broker, Spark, a folder), ``scenes``
and its neighbours are what is shown, one function each, ``screen`` is how, and ``play`` the order.
"""
