"""How much work one value can be to a schema, found before any value comes.

jsonschema-rs remembers results of recursive references only; a chain of definitions that each name
the next one twice takes 2^n steps. It also keeps one stack frame a step, and a stack that runs over
ends the process.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from twofold.contract.document import ANY_ITEM, ANY_PROPERTY, SAME, Document, Subschema


class _Cost(msgspec.Struct):
    """What a subschema costs.

    Attributes:
        tries: Subschemas tried on the very value.
        chain: The longest run of subschemas inside one another, all on the very value.
        below: For each part of the value, subschemas tried on it or (if more) on any one thing inside it.
    """

    tries: int = 1
    chain: int = 1
    below: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def peak(self) -> int:
        """The most subschemas tried on any one value."""
        most = self.tries
        for key, tries in self.below.items():
            general = sum(
                self.below[place] for place in (ANY_PROPERTY, ANY_ITEM) if key.startswith(place) and key != place
            )
            most = max(most, tries + general)
        return most


class Cost(msgspec.Struct, frozen=True):
    """What a schema costs at most.

    Attributes:
        tries: Subschemas tried on any one value, wherever it stands.
        chain: The longest run of subschemas inside one another on one value.
        is_recursive: A value may go as deep as its sender likes.
    """

    tries: int
    chain: int
    is_recursive: bool


_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def measure_cost(document: Document, price: Callable[[Subschema], int] = lambda _node: 1) -> Cost:
    """Measure a schema's cost; what refers back to itself is counted once, as jsonschema-rs tries it once.

    Args:
        document: The schema.
        price: What trying one subschema costs, those inside it left out.
    """
    costs: dict[int, _Cost] = {}
    open_nodes: set[int] = set()
    longest = 1
    is_recursive = False
    stack: list[tuple[Subschema, bool]] = [(document.root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            open_nodes.discard(id(node))
            costs[id(node)] = _add_up(node, price(node), costs)
            longest = max(longest, costs[id(node)].chain)
        elif id(node) in open_nodes:
            is_recursive = True
        elif id(node) not in costs:
            open_nodes.add(id(node))
            stack.append((node, True))
            stack.extend((part.node, False) for part in node.parts)
    return Cost(costs[id(document.root)].peak, longest, is_recursive)


def _add_up(node: Subschema, own: int, costs: dict[int, _Cost]) -> _Cost:
    total = _Cost(own)
    # To learn what was evaluated, jsonschema-rs judges once more at every step (measured: exactly so often).
    is_repeated = isinstance(node.schema, dict) and not _UNEVALUATED.isdisjoint(node.schema)
    for part in node.parts:
        cost = costs.get(id(part.node))
        if cost is None:  # it refers back to what is being measured
            continue
        if part.place == SAME:
            times = 1 + cost.chain if is_repeated else 1
            total.tries += cost.tries * times
            total.chain = max(total.chain, cost.chain + 1)
            total.below.update({place: tries * times for place, tries in cost.below.items()})
        else:
            total.below[part.place] += cost.peak
    return total
