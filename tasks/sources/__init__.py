"""Read RAG logs into Arrow tables of samples: files, folders, data sets, local or by URL, in bounded batches."""

from tasks.options.source_options import SourceOptions
from tasks.sources.location import SourceLike
from tasks.sources.readers.bad_rows import BadRow
from tasks.sources.sample_reader import SampleReader, all_columns, available_columns, read_samples

__all__ = ["BadRow", "SampleReader", "SourceLike", "SourceOptions", "all_columns", "available_columns", "read_samples"]
