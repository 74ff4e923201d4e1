"""A job, and a program to compare with."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Peer:
    """A program beside us."""

    name: str
    tool: str
    goal: str
    # The stages of a pipeline, from a `Given` and a number of threads.
    command: Callable
    # Number of threads, where it can be determined to use threads: it is as fast as with the better number.
    threads: tuple = (1,)
    # The sizes that it takes; all of the job's if absent.
    sizes: tuple = ()
    # The sizes that take it minutes.
    slow: tuple = ()


@dataclass
class Job:
    id: str
    name: str
    needs: str
    # A function from a `Place` and a size to a `Given`.
    make: Callable
    # Of our program, a `Given` and a number of threads, the stages.
    ours: Callable
    peers: list = field(default_factory=list)
    # Of our program and a `Given`: in words how far the outputs are the same.
    compare: Callable = lambda program, given: "–"
    # As many times the smallest.
    sizes: tuple = (1, 10)
    # The largest input whose outputs are compared.
    comparable: float = 64e6
