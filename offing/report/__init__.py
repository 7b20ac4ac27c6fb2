"""Room 6: results in, files and pages out."""
