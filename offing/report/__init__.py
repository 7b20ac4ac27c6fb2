"""Reports: results in, files and pages out."""
