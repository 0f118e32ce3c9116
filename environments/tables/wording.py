"""How questions are put; every split has its own ways."""

from collections.abc import Mapping, Sequence

WAYS: Mapping[str, Sequence[str]] = {
    "total": (
        "what is {measure}{of} {when}?", "tell me {measure}{of} {when}.",
        "I need {measure}{of} {when}.", "how large is {measure}{of} {when}?",
        "find {measure}{of} {when}.", "report {measure}{of} {when}.",
        "work out {measure}{of} {when}.", "give {measure}{of} {when}.",
    ),
    "by_group": (
        "for each {group}, {measure}{of} {when}.", "{measure}{of} {when}, by {group}.",
        "break down {measure}{of} {when} by {group}.", "per {group}: {measure}{of} {when}.",
        "show {measure}{of} {when} for every {group}.", "split {measure}{of} {when} by {group}.",
        "list {measure}{of} {when} per {group}.", "by {group}, {measure}{of} {when}.",
    ),
    "top": (
        "which {number} values of {group} lead by {measure}{of} {when}?",
        "name the top {number} of {group} by {measure}{of} {when}.",
        "rank {group} by {measure}{of} {when} and give the first {number}.",
        "the {number} best of {group} by {measure}{of} {when}, please.",
        "what are the {number} highest of {group} by {measure}{of} {when}?",
        "give the leading {number} of {group} by {measure}{of} {when}.",
        "find the {number} largest of {group} by {measure}{of} {when}.",
        "list {number} of {group}, those with most by {measure}{of} {when}.",
    ),
    "at_least": (
        "each {group} with {measure}{of} {when} of at least {number}, with that value.",
        "keep every {group} where {measure}{of} {when} is {number} or more, with the value.",
        "for which {group} is {measure}{of} {when} no less than {number}? Show it.",
        "show {group} and {measure}{of} {when}, where that is {number} or above.",
        "the values of {group} that reach {number} in {measure}{of} {when}, and how much.",
        "list {group} with {measure}{of} {when}, if it is {number} or higher.",
        "{group} and {measure}{of} {when}, from {number} upwards.",
        "any {group} that has {number} or more in {measure}{of} {when}, with the figure.",
    ),
    "share": (
        "for each {group} its share of {measure}{of} {when}, in whole percent, rounded down.",
        "what percent (rounded down) of {measure}{of} {when} is due to each {group}?",
        "each {group} as a percentage, rounded down, of {measure}{of} {when}.",
        "split {measure}{of} {when} over {group} in percent, fractions dropped.",
        "the percentage of {measure}{of} {when} per {group}, without fractions.",
        "per {group}, the part of {measure}{of} {when} in percent, cut to whole numbers.",
        "how many full percent of {measure}{of} {when} has each {group}?",
        "give {group} and the whole percent of {measure}{of} {when} that it has.",
    ),
    "change": (
        "how {measure}{of} changed from {early} to {late}, per {group}; no rows count as 0.",
        "by how much did {measure}{of} change from {early} to {late}, per {group}? Nothing is 0.",
        "per {group}: {measure}{of} in {late} less that in {early}; where there is none, 0.",
        "{late} minus {early} of {measure}{of}, for every {group} seen in either; none is 0.",
        "{measure}{of} in {late}, minus the same in {early}, per {group}; none counts as 0.",
        "the rise or fall of {measure}{of} from {early} to {late} by {group}; none is 0.",
        "show each {group} with {measure}{of} of {late} minus that of {early}; absent is 0.",
        "difference of {measure}{of}, {late} less {early}, for each {group}; missing means 0.",
    ),
    "never": (
        "which {one} names have rows, but none{of} {when}? In alphabetical order.",
        "names of every {one} that is active but has nothing{of} {when}, alphabetically.",
        "find, in alphabetical order, the {one} names that occur, but never{of} {when}.",
        "list alphabetically the {one} names with rows elsewhere but not{of} {when}.",
        "who among the {one} names has rows, yet none{of} {when}? Sort by name.",
        "sorted by name: every {one} with rows in general but without any{of} {when}.",
        "give the {one} names, in order, that are used but not{of} {when}.",
        "which {one} names, in alphabetical order, appear in the facts but not{of} {when}?",
    ),
}  # fmt: skip
