"""`hubctl` whose password hashes take no time, for tests of what stands around passwords."""

import functools

import argon2

if __name__ == "__main__":
    argon2.PasswordHasher = functools.partial(
        argon2.PasswordHasher, time_cost=1, memory_cost=8, parallelism=1
    )
    from cli.hubctl import main

    main()
