"""What the subcommands do: parse is `flags`, the work is `door`; here it is called and printed."""
