"""Every figure and table of the paper, ours beside it, from one state of the library.

    python -m experiments.paper all --dry-run            every part, its hardware, what it costs
    python -m experiments.paper theory                   the parts of one figure, then its page
    python -m experiments.paper all --phase plan         what a GPU is for
    python -m experiments.paper all --phase play         what needs a true environment, on a CPU
    python -m experiments.paper all --phase draw         pages and pictures from records (`make paper-tables`)

`contents` lists what the paper has and what stands for it here. `studies` compute: each is a list of parts, and a
part is one job that ends in one record or in none. `figures` draw, and read nothing but records.
"""
