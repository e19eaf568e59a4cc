from halo_site.cli import main

main()
