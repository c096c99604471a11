"""In which form messages travel inside a result, and which of them a browse shows.

Owns the numbers of the fields `form` and `states`. MESSAGES is a list as in a Delivery (a browse
has its own item), ARROW one Arrow IPC stream. COUNT leaves them out: others read the lease batch.
ARROW_HEADS is ARROW without payloads and headers: a browse for those who count and group.
"""

from typing import Final

MESSAGES: Final = 0
ARROW: Final = 1
COUNT: Final = 2
ARROW_HEADS: Final = 3

# Bits of the states a browse shows; one of them stands with every message it returns.
READY: Final = 1
DELAYED: Final = 2
LEASED: Final = 4
ALL_STATES: Final = READY | DELAYED | LEASED
