#!/usr/bin/env python3
"""``halo`` under its Django name."""

from halo_site.cli import main

if __name__ == "__main__":
    main()
