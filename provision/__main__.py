"""`python -m provision` is the same command as `gpu-provision`."""

from provision.cli.main import main

if __name__ == "__main__":
    main()
