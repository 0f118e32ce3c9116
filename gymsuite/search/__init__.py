"""Search over a corpus of one's own: documents, an index, tools for agents, and what they cited."""

from gymsuite.search.citations import (
    CitationMarks,
    judge_citations,
    judge_quotes,
    proof_metrics,
)
from gymsuite.search.corpus import Corpus
from gymsuite.search.desk import Citation
from gymsuite.search.documents import Document, read_documents
from gymsuite.search.folder import open_folder
from gymsuite.search.library import Library
from gymsuite.search.pairs import PairScore, score_pairs
from gymsuite.search.retriever import Hit, Retriever
from gymsuite.search.text_protocol import text_protocol
from gymsuite.search.tools import search_tools
from gymsuite.search.trails import answer_of, replay_trail

__all__ = [
    "Citation",
    "CitationMarks",
    "Corpus",
    "Document",
    "Hit",
    "Library",
    "PairScore",
    "Retriever",
    "answer_of",
    "judge_citations",
    "judge_quotes",
    "open_folder",
    "proof_metrics",
    "read_documents",
    "replay_trail",
    "score_pairs",
    "search_tools",
    "text_protocol",
]
